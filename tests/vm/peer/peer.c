/* What libibverbs says of this machine: every device's name and GID table, a line each. */
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

static int print_gids(struct ibv_device *device)
{
	/* The table travels in one ioctl attribute, whose length has 16 bits. */
	enum { MAX = 65535 / sizeof(struct ibv_gid_entry) };
	struct ibv_gid_entry *entries = calloc(MAX, sizeof *entries);
	struct ibv_context *context = ibv_open_device(device);
	ssize_t count = -1;

	if (entries && context)
		count = ibv_query_gid_table(context, entries, MAX, 0);
	for (ssize_t i = 0; i < count; i++) {
		const struct ibv_gid_entry *e = &entries[i];
		const uint8_t *gid = e->gid.raw;

		printf("%s port %u index %u type %u gid ", ibv_get_device_name(device), e->port_num,
		       e->gid_index, e->gid_type);
		for (int byte = 0; byte < 16; byte += 2)
			printf("%s%02x%02x", byte ? ":" : "", gid[byte], gid[byte + 1]);
		printf(" ifindex %u\n", e->ndev_ifindex);
	}
	if (count < 0)
		fprintf(stderr, "%s: no GID table: %zd\n", ibv_get_device_name(device), count);
	if (context)
		ibv_close_device(context);
	free(entries);
	return count < 0;
}

int main(void)
{
	int failed = 0, count = 0;
	struct ibv_device **devices = ibv_get_device_list(&count);

	if (!devices) {
		perror("ibv_get_device_list");
		return 1;
	}
	for (int i = 0; i < count; i++) {
		printf("device %s\n", ibv_get_device_name(devices[i]));
		failed |= print_gids(devices[i]);
	}
	ibv_free_device_list(devices);
	return failed;
}
