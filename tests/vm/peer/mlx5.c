/*
 * What rdma-core's mlx5 library answers to the questions that uverbs answers for mlx5 devices: a line
 * for each answer, in a form that the scenarios make of our answers too and compare. (What libibverbs
 * answers for any device is in answers.c.)
 *
 *   mlx5 ports DEV            mlx5dv_query_port, from port 0 to one beyond the last
 *   mlx5 port DEV PORT SIZE   the same for one port of any driver's device, with SIZE bytes of memory
 *   mlx5 devx DEV CONTEXT [SIZE HEX]…
 *                             mlx5dv_devx_general_cmd of these bytes, with SIZE bytes for the output;
 *                             CONTEXT is "devx", opened with DEVX or not at all, or "plain", opened
 *                             with DEVX where that can be had
 *   mlx5 gone DEV             mlx5dv_query_port and a NOP by DEVX, when a line comes in
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

static struct ibv_context *open_device(const char *name, uint32_t flags)
{
	struct mlx5dv_context_attr attr = {.flags = flags};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name)) {
			errno = 0;
			context = mlx5dv_open_device(list[i], &attr);
			if (!context)
				printf("open: errno %d\n", errno);
		}
	if (list)
		ibv_free_device_list(list);
	return context;
}

static void port(struct ibv_context *context, uint32_t number)
{
	struct mlx5dv_port info = {};
	int error = mlx5dv_query_port(context, number, &info);

	printf("port %" PRIu32 ": ", number);
	if (error) {
		printf("errno %d\n", error);
		return;
	}
	printf("flags %#" PRIx64 " vport %u vport_vhca_id %u esw_owner_vhca_id %u", (uint64_t)info.flags,
	       info.vport, info.vport_vhca_id, info.esw_owner_vhca_id);
	printf(" icm_rx %#" PRIx64 " icm_tx %#" PRIx64 " reg_c0 %#x %#x\n",
	       (uint64_t)info.vport_steering_icm_rx, (uint64_t)info.vport_steering_icm_tx,
	       info.reg_c0.value, info.reg_c0.mask);
}

static int ports(const char *name)
{
	struct ibv_context *context = open_device(name, 0);
	struct ibv_device_attr attr;

	if (!context || ibv_query_device(context, &attr))
		return 1;
	for (uint32_t number = 0; number <= attr.phys_port_cnt + 1u; number++)
		port(context, number);
	return ibv_close_device(context) ? 1 : 0;
}

/* The bytes of a text of hexadecimal digits; their number, or -1. */
static int bytes(const char *text, uint8_t *into, size_t room)
{
	size_t digits = strlen(text);

	if (digits % 2 || digits / 2 > room)
		return -1;
	for (size_t i = 0; i < digits / 2; i++)
		if (sscanf(text + 2 * i, "%2hhx", &into[i]) != 1)
			return -1;
	return digits / 2;
}

static int one_port(const char *name, uint32_t number, size_t size)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	void *info = calloc(size + 1, 1);

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (!context || !info)
		return 1;
	/* What mlx5dv_query_port calls, with the size of the caller's structure. */
	printf("errno %d\n", _mlx5dv_query_port(context, number, info, size));
	free(info);
	ibv_free_device_list(list);
	return ibv_close_device(context) ? 1 : 0;
}

static int command(struct ibv_context *context, size_t size, const char *text)
{
	static uint8_t in[65535];
	int length = bytes(text, in, sizeof(in));
	uint8_t *out = calloc(size + 1, 1);
	uint32_t syndrome = 0;
	int result;

	if (length < 0 || !out)
		return 1;
	memset(out, 0xee, size);
	result = mlx5dv_devx_general_cmd(context, in, length, out, size);
	if (size >= 8)
		memcpy(&syndrome, out + 4, sizeof(syndrome));
	printf("errno %d status %d syndrome 0x%x\n", result, out[0], be32toh(syndrome));
	printf("out ");
	for (size_t i = 0; i < size; i++)
		printf("%02x", out[i]);
	printf("\n");
	free(out);
	return 0;
}

static int devx(const char *name, uint32_t flags, int count, char **words)
{
	struct ibv_context *context = open_device(name, flags);

	if (!context)
		return 1;
	for (int i = 0; i + 1 < count; i += 2)
		if (command(context, strtoul(words[i], NULL, 0), words[i + 1]))
			return 1;
	return ibv_close_device(context) ? 1 : 0;
}

static int gone(const char *name)
{
	struct ibv_context *context = open_device(name, MLX5DV_CONTEXT_FLAGS_DEVX);
	char line[16];

	if (!context)
		return 1;
	printf("open\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	port(context, 1);
	port(context, 99);
	return command(context, 16, "080d0000000000000000000000000000");
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "ports"))
		return ports(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "gone"))
		return gone(argv[2]);
	if (argc == 5 && !strcmp(argv[1], "port"))
		return one_port(argv[2], strtoul(argv[3], NULL, 0), strtoul(argv[4], NULL, 0));
	if (argc >= 6 && !strcmp(argv[1], "devx") && !strcmp(argv[3], "devx"))
		return devx(argv[2], MLX5DV_CONTEXT_FLAGS_DEVX, argc - 4, argv + 4);
	if (argc >= 6 && !strcmp(argv[1], "devx") && !strcmp(argv[3], "plain"))
		return devx(argv[2], 0, argc - 4, argv + 4);
	fprintf(stderr, "usage: see mlx5.c\n");
	return 2;
}
