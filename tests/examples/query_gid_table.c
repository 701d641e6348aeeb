/*
 * query_gid_table
 *
 * Prints all GIDs of all ports of all devices: ibv_query_gid_table(3), one call for a device.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<uverbs.h>)
#include <uverbs.h>
#else
#include <infiniband/verbs.h>
#endif

/* How many GIDs a device may have: the sum of its ports' tables. -1 and a message if that fails. */
static long room(struct ibv_context *context, const char *name)
{
	struct ibv_device_attr device;
	int error = ibv_query_device(context, &device);
	/* An InfiniBand switch has one port that can be asked, 0. */
	int is_switch = context->device->node_type == IBV_NODE_SWITCH;
	long sum = 0;

	if (error) {
		fprintf(stderr, "%s: %s\n", name, strerror(error));
		return -1;
	}
	for (int number = !is_switch; number <= (is_switch ? 0 : device.phys_port_cnt); number++) {
		struct ibv_port_attr port;

		error = ibv_query_port(context, (uint8_t)number, &port);
		if (error) {
			fprintf(stderr, "%s: port %d: %s\n", name, number, strerror(error));
			return -1;
		}
		sum += port.gid_tbl_len;
	}
	return sum;
}

/* Prints a device's GIDs. Returns whether it could. */
static int print_gids(struct ibv_context *context, const char *name)
{
	long max = room(context, name);
	struct ibv_gid_entry *entries;
	ssize_t count;

	if (max < 0)
		return 0;
	if (max == 0)
		return 1;	/* no entries are asked for in vain: a room of 0 is an error */
	entries = calloc((size_t)max, sizeof(*entries));
	if (!entries) {
		fprintf(stderr, "%s: %s\n", name, strerror(errno));
		return 0;
	}
	/* Only entries that are not empty; the negative errno value on failure. */
	count = ibv_query_gid_table(context, entries, (size_t)max, 0);
	if (count < 0)
		fprintf(stderr, "%s: GID table: %s\n", name, strerror((int)-count));
	for (ssize_t i = 0; i < count; i++) {
		char gid[INET6_ADDRSTRLEN];

		inet_ntop(AF_INET6, entries[i].gid.raw, gid, sizeof(gid));
		printf("%s port %u index %u: %s\n", name, entries[i].port_num, entries[i].gid_index, gid);
	}
	free(entries);
	return count >= 0;
}

int main(void)
{
	int devices, good = 0;
	struct ibv_device **list = ibv_get_device_list(&devices);

	if (!list) {
		fprintf(stderr, "listing RDMA devices: %s\n", strerror(errno));
		return 1;
	}
	if (devices == 0)
		fprintf(stderr, "there are no RDMA devices\n");
	for (int i = 0; i < devices; i++) {
		const char *name = ibv_get_device_name(list[i]);
		struct ibv_context *context = ibv_open_device(list[i]);

		if (!context) {
			fprintf(stderr, "opening %s: %s\n", name, strerror(errno));
			continue;
		}
		good += print_gids(context, name);
		ibv_close_device(context);
	}
	ibv_free_device_list(list);
	return devices == 0 || good < devices;
}
