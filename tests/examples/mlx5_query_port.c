/*
 * mlx5_query_port DEVICE
 *
 * Prints what the e-switch of an mlx5 device knows of its ports: mlx5dv_query_port(3).
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if __has_include(<uverbs.h>)
#include <uverbs.h>
#else
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#endif

/* Opens the mlx5 device of this name. Says why, where it returns NULL. */
static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct mlx5dv_context_attr attr;
	struct ibv_context *context = NULL;
	int i;

	if (!list) {
		fprintf(stderr, "listing RDMA devices: %s\n", strerror(errno));
		return NULL;
	}
	memset(&attr, 0, sizeof(attr));
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			break;
	if (!list[i])
		fprintf(stderr, "%s: there is no such RDMA device\n", name);
	else if (!mlx5dv_is_supported(list[i]))
		fprintf(stderr, "%s: this is no mlx5 device\n", name);
	else if (!(context = mlx5dv_open_device(list[i], &attr)))
		fprintf(stderr, "opening %s: %s\n", name, strerror(errno));
	ibv_free_device_list(list);
	return context;
}

static void print_port(uint32_t number, const struct mlx5dv_port *port)
{
	printf("port %u:", number);
	/* Only what flags names has a meaning; without switchdev mode that is nothing. */
	if (!port->flags)
		printf(" no vport, the device is not in switchdev mode");
	if (port->flags & MLX5DV_QUERY_PORT_VPORT)
		printf(" vport %u", port->vport);
	if (port->flags & MLX5DV_QUERY_PORT_VPORT_VHCA_ID)
		printf(" vhca id %u", port->vport_vhca_id);
	if (port->flags & MLX5DV_QUERY_PORT_ESW_OWNER_VHCA_ID)
		printf(" of the e-switch of vhca id %u", port->esw_owner_vhca_id);
	if (port->flags & MLX5DV_QUERY_PORT_VPORT_REG_C0)
		printf(" register C0 %#x/%#x", port->reg_c0.value, port->reg_c0.mask);
	if (port->flags & MLX5DV_QUERY_PORT_VPORT_STEERING_ICM_RX)
		printf(" receive steering at %#llx", (unsigned long long)port->vport_steering_icm_rx);
	if (port->flags & MLX5DV_QUERY_PORT_VPORT_STEERING_ICM_TX)
		printf(" send steering at %#llx", (unsigned long long)port->vport_steering_icm_tx);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct ibv_context *context;
	struct ibv_device_attr_ex device;
	int error, failed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: mlx5_query_port DEVICE\n");
		return 2;
	}
	context = open_device(argv[1]);
	if (!context)
		return 1;
	/* Of an e-switch manager with many representors, which are its ports, the old field is short. */
	error = ibv_query_device_ex(context, NULL, &device);
	if (error) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(error));
		ibv_close_device(context);
		return 1;
	}
	for (uint32_t number = 1; number <= device.phys_port_cnt_ex; number++) {
		struct mlx5dv_port port;

		memset(&port, 0, sizeof(port));
		error = mlx5dv_query_port(context, number, &port);
		if (!error) {
			print_port(number, &port);
		} else if (error == EOPNOTSUPP) {
			printf("port %u: nothing\n", number);
		} else {
			fprintf(stderr, "port %u: %s\n", number, strerror(error));
			failed = 1;
		}
	}
	ibv_close_device(context);
	return failed;
}
