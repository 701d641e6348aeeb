/*
 * Every function of libmlx5 that uverbs has, with good and bad arguments, on all devices, those of
 * other drivers too; see surface.h.
 */
#include <endian.h>
#include <stdbool.h>

#include "surface.h"

#ifdef UVERBS_H
#include <uverbs.h>
#else
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#endif

/* Firmware commands; their numbers are those of include/linux/mlx5/mlx5_ifc.h. */
#define QUERY_HCA_CAP 0x100
#define QUERY_VPORT_STATE 0x750
#define NOP 0x80d
#define CREATE_MKEY 0x200	/* makes something, which a general command may not */
#define NO_SUCH_COMMAND 0xff0

#define IN_SIZE 16

/*
 * Ports
 */

#if RDMA_CORE >= 44
static void print_port(const struct mlx5dv_port *port)
{
	printf(" flags %#" PRIx64 " vport %u vhca %u owner %u rsvd %u icm %#" PRIx64 " %#" PRIx64
	       " reg_c0 %#x %#x",
	       (uint64_t)port->flags, port->vport, port->vport_vhca_id, port->esw_owner_vhca_id,
	       port->rsvd0, (uint64_t)port->vport_steering_icm_rx,
	       (uint64_t)port->vport_steering_icm_tx, port->reg_c0.value, port->reg_c0.mask);
}

static void port(struct ibv_context *context, uint32_t number)
{
	struct mlx5dv_port *info = (void *)guarded(sizeof(*info));
	int result = mlx5dv_query_port(context, number, info);

	printf("port %" PRIu32 ": %d", number, result);
	if (!result)
		print_port(info);
	print_answer(result, (void *)info, sizeof(*info));
}

static void port_size(struct ibv_context *context, uint32_t number, size_t size)
{
	uint8_t *info = guarded(size);
	int result = _mlx5dv_query_port(context, number, (void *)info, size);

	printf("port %" PRIu32 " size %zu: %d", number, size, result);
	print_answer(result, info, size);
}

static void ports(struct ibv_context *context)
{
	struct ibv_device_attr attr;

	memset(&attr, 0, sizeof(attr));
	if (ibv_query_device(context, &attr))
		return;
	for (uint32_t number = 0; number <= attr.phys_port_cnt + 1u; number++)
		port(context, number);
	port(context, 255);
	port(context, 256);
	port(context, 65536 + 1);
	port(context, UINT32_MAX);
	for (size_t size = 0; size <= sizeof(struct mlx5dv_port) + 24; size++)
		port_size(context, 1, size);
	port_size(context, 1, 65535);
	port_size(context, 1, 65536);
	port_size(context, 0, sizeof(struct mlx5dv_port));
}

#else
static void ports(struct ibv_context *context)
{
	(void)context;
}
#endif

/*
 * Firmware commands
 */

static void command(struct ibv_context *context, uint16_t opcode, uint16_t modifier, size_t inlen,
		    size_t outlen)
{
	/* As long as the longest request, for every length. */
	uint8_t *in = calloc(1, inlen + IN_SIZE), *out = guarded(outlen);
	int result, failed;

	if (!in) {
		perror("calloc");
		exit(3);
	}
	in[0] = opcode >> 8;
	in[1] = opcode & 0xff;
	in[6] = modifier >> 8;
	in[7] = modifier & 0xff;
	result = mlx5dv_devx_general_cmd(context, in, inlen, out, outlen);
	printf("command %#x/%u in %zu out %zu: %d", opcode, modifier, inlen, outlen, result);
	/* Status and syndrome, also of a refusal. */
	failed = result && result != EREMOTEIO;
	if (!failed && outlen >= 8)
		printf(" status %#x syndrome %02x%02x%02x%02x", out[0], out[4], out[5], out[6], out[7]);
	/* All of it: where there is no answer nothing was written. */
	print_bytes(out, outlen);
	free(in);
}

static void commands(struct ibv_context *context)
{
	static const size_t lengths[] = {0, 1, 7, 8, 12, 15, 16, 17, 64, 4112, 65535, 65536};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		command(context, NOP, 0, lengths[i], 16);
		command(context, NOP, 0, IN_SIZE, lengths[i]);
		command(context, QUERY_HCA_CAP, 0, IN_SIZE, lengths[i]);
	}
	/* Capabilities, those of the device and those of groups that there may not be. */
	for (uint16_t modifier = 0; modifier < 0x40; modifier++)
		command(context, QUERY_HCA_CAP, modifier, IN_SIZE, 4112);
	command(context, QUERY_VPORT_STATE, 0, IN_SIZE, 16);
	command(context, QUERY_VPORT_STATE, 0x1234, IN_SIZE, 16);
	command(context, CREATE_MKEY, 0, 64, 16);
	command(context, NO_SUCH_COMMAND, 0, IN_SIZE, 16);
	command(context, 0, 0, IN_SIZE, 16);
	command(context, UINT16_MAX, 0, IN_SIZE, 16);
}

/*
 * Devices
 */

static void questions(const char *how, struct ibv_context *context)
{
	printf("== %s %s\n", context->device->name, how);
	printf("vectors %d async_fd %d\n", context->num_comp_vectors, context->async_fd >= 0);
	ports(context);
	commands(context);
	printf("close: %d\n", ibv_close_device(context));
}

static struct ibv_context *open_with(struct ibv_device *device, uint32_t flags, uint64_t mask)
{
	struct mlx5dv_context_attr attr;
	struct ibv_context *context;

	memset(&attr, 0, sizeof(attr));
	attr.flags = flags;
	attr.comp_mask = mask;
	errno = 0;
	context = mlx5dv_open_device(device, &attr);
	printf("open %s flags %#" PRIx32 " mask %#" PRIx64 ": %s", device->name, flags, mask,
	       context ? "a context" : "NULL");
	if (!context)
		printf(" errno %d", errno);
	printf("\n");
	return context;
}

static void bad_attributes(struct ibv_device *device)
{
	static const struct {
		uint32_t flags;
		uint64_t mask;
	} attributes[] = {
		{2, 0}, {3, 0}, {UINT32_MAX, 0}, {0, 1 << 5}, {1, 1 << 5}, {0, UINT64_MAX - 1},
	};

	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		struct ibv_context *context =
			open_with(device, attributes[i].flags, attributes[i].mask);

		if (context)
			printf("close: %d\n", ibv_close_device(context));
	}
}

static void device(struct ibv_device *device)
{
	struct ibv_context *context;

	printf("device %s: supported %d\n", device->name, mlx5dv_is_supported(device));
	context = ibv_open_device(device);
	if (context)
		questions("opened by ibv_open_device", context);
	errno = 0;
	context = mlx5dv_open_device(device, NULL);
	if (context)
		questions("opened without attributes", context);
	else
		printf("open without attributes: NULL errno %d\n", errno);
	context = open_with(device, 0, 0);
	if (context)
		questions("opened with attributes", context);
	context = open_with(device, MLX5DV_CONTEXT_FLAGS_DEVX, 0);
	if (context)
		questions("opened for DEVX", context);
	bad_attributes(device);
}

int main(void)
{
	struct ibv_device **list;

	errno = 0;
	list = ibv_get_device_list(NULL);
	if (!list) {
		printf("list: NULL errno %d\n", errno);
		return 0;
	}
	for (int i = 0; list[i]; i++)
		device(list[i]);
	ibv_free_device_list(list);
	return 0;
}
