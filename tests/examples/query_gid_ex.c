/*
 * query_gid_ex DEVICE PORT INDEX
 *
 * Prints one entry of a port's GID table: ibv_query_gid_ex(3).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<uverbs.h>)
#include <uverbs.h>
#else
#include <infiniband/verbs.h>
#endif

/* Opens the device of this name. Says why, where it returns NULL. */
static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	if (!list) {
		fprintf(stderr, "listing RDMA devices: %s\n", strerror(errno));
		return NULL;
	}
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			break;
	if (!list[i])
		fprintf(stderr, "%s: there is no such RDMA device\n", name);
	else if (!(context = ibv_open_device(list[i])))
		fprintf(stderr, "opening %s: %s\n", name, strerror(errno));
	/* An open device does not need the list. */
	ibv_free_device_list(list);
	return context;
}

static void print_entry(const struct ibv_gid_entry *entry)
{
	static const char *const types[] = {"IB", "RoCE v1", "RoCE v2"};
	char gid[INET6_ADDRSTRLEN], netdev[IF_NAMESIZE];

	/* A GID has the form of an IPv6 address; a RoCE v2 one is one. */
	inet_ntop(AF_INET6, entry->gid.raw, gid, sizeof(gid));
	printf("%s, type %s", gid, entry->gid_type < 3 ? types[entry->gid_type] : "unknown");
	/* The index counts in the network namespace of the interface, which may not be ours. */
	if (entry->ndev_ifindex && if_indextoname(entry->ndev_ifindex, netdev))
		printf(", network interface %s", netdev);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct ibv_context *context;
	struct ibv_gid_entry entry;
	uint32_t port, index;
	int error;

	if (argc != 4) {
		fprintf(stderr, "usage: query_gid_ex DEVICE PORT INDEX\n");
		return 2;
	}
	port = (uint32_t)strtoul(argv[2], NULL, 0);
	index = (uint32_t)strtoul(argv[3], NULL, 0);
	context = open_device(argv[1]);
	if (!context)
		return 1;
	error = ibv_query_gid_ex(context, port, index, &entry, 0);
	/* Tables are sparse: an empty entry is nothing unusual. */
	if (error == ENODATA)
		printf("empty\n");
	else if (error)
		fprintf(stderr, "GID %u of port %u: %s\n", index, port, strerror(error));
	else
		print_entry(&entry);
	ibv_close_device(context);
	return error && error != ENODATA;
}
