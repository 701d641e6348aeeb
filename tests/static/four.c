/*
 * The program by which libuverbs.a is measured: it calls the four functions that the library is for.
 * With -DSTUBS they, and what they need, are empty functions of its own.
 *
 * four [DEVICE]: GIDs and vport of port 1, and all port GUIDs, of a device; of the first where none
 * is named.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <uverbs.h>

#ifdef STUBS
struct ibv_device **ibv_get_device_list(int *num_devices)
{
	*num_devices = 0;
	return NULL;
}
void ibv_free_device_list(struct ibv_device **list) { (void)list; }
const char *ibv_get_device_name(struct ibv_device *device) { return (const char *)device; }
struct ibv_context *ibv_open_device(struct ibv_device *device) { return (void *)device; }
int ibv_close_device(struct ibv_context *context) { return context != NULL; }
int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	return context && entry && port_num + gid_index + flags + entry_size;
}
ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	return context && entries && max_entries + flags + entry_size;
}
int _mlx5dv_query_port(struct ibv_context *context, uint32_t port_num, struct mlx5dv_port *info,
		       size_t info_len)
{
	return context && info && port_num + info_len;
}
int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max)
{
	return ca_name && portguids && max;
}
#endif

static void print_gid(const char *what, const struct ibv_gid_entry *entry)
{
	printf("%s %" PRIu32 " %" PRIu32 ":", what, entry->port_num, entry->gid_index);
	for (size_t byte = 0; byte < sizeof(entry->gid.raw); byte++)
		printf(" %02x", entry->gid.raw[byte]);
	printf("\n");
}

int main(int argc, char **argv)
{
	static struct ibv_gid_entry entries[1024];
	struct ibv_gid_entry one;
	struct mlx5dv_port port = {0};
	__be64 guids[17];
	int count = 0, wanted = -1, error;
	struct ibv_device **list = ibv_get_device_list(&count);

	for (int index = 0; index < count && wanted < 0; index++) {
		if (argc < 2 || strcmp(ibv_get_device_name(list[index]), argv[1]) == 0)
			wanted = index;
	}
	if (wanted < 0) {
		fprintf(stderr, "no such device among %d\n", count);
		return 1;
	}
	struct ibv_context *context = ibv_open_device(list[wanted]);
	if (!context) {
		fprintf(stderr, "%s: %s\n", ibv_get_device_name(list[wanted]), strerror(errno));
		return 1;
	}
	error = ibv_query_gid_ex(context, 1, 0, &one, 0);
	if (error)
		printf("gid: %s\n", strerror(error));
	else
		print_gid("gid", &one);
	ssize_t rows = ibv_query_gid_table(context, entries, 1024, 0);
	for (ssize_t row = 0; row < rows; row++)
		print_gid("row", &entries[row]);
	error = mlx5dv_query_port(context, 1, &port);
	printf("vport: %s\n", error ? strerror(error) : "known");
	int ports = umad_get_ca_portguids(ibv_get_device_name(list[wanted]), guids, 17);
	for (int number = 0; number < ports; number++) {
		printf("port guid:");
		for (size_t byte = 0; byte < sizeof(guids[0]); byte++)
			printf(" %02x", ((unsigned char *)&guids[number])[byte]);
		printf("\n");
	}
	ibv_close_device(context);
	ibv_free_device_list(list);
	return rows < 0 || ports < 0;
}
