/*
 * Canaries around every structure that a function of the C interface writes: what it writes is inside.
 *
 *   canaries                 asks this machine's devices
 *   canaries TREE            with -DSIMULATED: asks the device of tests/capi/simulated, whose sysfs is TREE;
 *                            all answer, and with the right numbers in the fields
 *
 * -DUVERBS_H takes uverbs.h and not rdma-core's headers. Each structure lies where its type may lie and a
 * stricter one may not: on i686 many are aligned to four bytes only.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef UVERBS_H
#include <uverbs.h>
#else
#include <infiniband/mlx5dv.h>
#include <infiniband/umad.h>
#include <infiniband/verbs.h>

/* Exported, but declared in no public header of rdma-core's. */
int uverbs_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		      size_t length);
int uverbs_query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t length);
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       unsigned int *type);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
#define GID_TYPE unsigned int
#endif
#ifndef GID_TYPE
#define GID_TYPE enum ibv_gid_type_sysfs
#endif

/* The exported function. In both headers the name is that of a macro or of an inline function. */
extern int old_query_port(struct ibv_context *context, uint8_t port_num,
			  void *attr) __asm__("ibv_query_port");

#define CANARY 0xa5
#define AROUND 64
#define MOST 65536

static unsigned char block[AROUND + 16 + MOST + AROUND] __attribute__((aligned(64)));
static unsigned char *inside;
static size_t room;
static int structures, touched, wrong;

/* Memory of this size between canaries; its address is a multiple of `align` and of nothing more. */
static void *guard(size_t size, size_t align)
{
	memset(block, CANARY, sizeof(block));
	inside = block + AROUND + align;
	room = size;
	return inside;
}

#define PLACE(type) guard(sizeof(type), _Alignof(type))

/* Says what a function did to the memory that it was given last. */
static void checked(const char *what, long result, bool failed)
{
	size_t written = 0, beyond = 0;

	for (unsigned char *byte = block; byte < block + sizeof(block); byte++) {
		bool is_inside = byte >= inside && byte < inside + room;

		written += is_inside && *byte != CANARY;
		beyond += !is_inside && *byte != CANARY;
	}
	structures++;
	touched += beyond != 0;
	if (beyond)
		printf("%s: %ld, %zu bytes of %zu, %zu BYTES BEYOND THEM\n", what, result, written, room,
		       beyond);
	(void)failed;
#ifdef SIMULATED
	if (failed || (room && !written)) {
		wrong++;
		printf("%s: %ld, errno %d, %zu bytes of %zu: NO ANSWER\n", what, result, errno, written,
		       room);
	}
#endif
}

#ifdef SIMULATED
#define IS(field, value)                                                                           \
	do {                                                                                       \
		if ((uint64_t)(field) != (uint64_t)(value)) {                                      \
			wrong++;                                                                   \
			printf("%s IS %#" PRIx64 "\n", #field, (uint64_t)(field));                 \
		}                                                                                  \
	} while (0)
#else
#define IS(field, value) ((void)(field))
#endif

static void device(struct ibv_context *context)
{
	struct ibv_device_attr *attr = PLACE(struct ibv_device_attr);
	struct ibv_device_attr_ex *attr_ex;
	int result = ibv_query_device(context, attr);

	checked("ibv_query_device", result, result);
	IS(be64toh(attr->node_guid), 0x0102030405060708);
	IS(attr->max_mr_size, 0x0102030405060708);
	IS(attr->page_size_cap, 0x1112131415161718);
	IS(attr->vendor_id, 21);
	IS(attr->max_srq_sge, 22);
	IS(attr->max_pkeys, 23);
	IS(attr->local_ca_ack_delay, 24);
	IS(attr->phys_port_cnt, 1);

	attr_ex = PLACE(struct ibv_device_attr_ex);
	result = ibv_query_device_ex(context, NULL, attr_ex);
	checked("ibv_query_device_ex", result, result);
	IS(attr_ex->orig_attr.max_pkeys, 23);
	IS(attr_ex->comp_mask, 0);
	IS(attr_ex->odp_caps.general_caps, 0x2122232425262728);
	IS(attr_ex->odp_caps.per_transport_caps.ud_odp_caps, 25);
	IS(attr_ex->completion_timestamp_mask, 0x3132333435363738);
	IS(attr_ex->hca_core_clock, 26);
	IS(attr_ex->device_cap_flags_ex, 0x4142434445464748);
	IS(attr_ex->tso_caps.max_tso, 33);
	IS(attr_ex->rss_caps.max_rwq_indirection_table_size, 27);
	IS(attr_ex->rss_caps.rx_hash_fields_mask, 0x6162636465666768);
	IS(attr_ex->rss_caps.rx_hash_function, 34);
	IS(attr_ex->max_wq_type_rq, 28);
	IS(attr_ex->packet_pacing_caps.supported_qpts, 35);
	IS(attr_ex->raw_packet_caps, 29);
	IS(attr_ex->tm_caps.max_sge, 30);
	IS(attr_ex->cq_mod_caps.max_cq_period, 31);
	IS(attr_ex->max_dm_size, 0x5152535455565758);
	IS(attr_ex->xrc_odp_caps, 32);
	IS(attr_ex->phys_port_cnt_ex, 1);
	for (size_t size = sizeof(struct ibv_device_attr); size < sizeof(*attr_ex) + 16; size++) {
		attr_ex = guard(size, _Alignof(struct ibv_device_attr_ex));
		result = uverbs_query_device_ex(context, NULL, attr_ex, size);
		checked("uverbs_query_device_ex", result, result);
	}
	for (size_t size = 0; size <= 24; size += 8) {
		result = _ibv_query_comp_cntr_caps(context, guard(size, 8), size);
		/* Not supported, and all of it is zeros. */
		checked("_ibv_query_comp_cntr_caps", result, result != EOPNOTSUPP);
	}
}

static void port(struct ibv_context *context)
{
	struct ibv_port_attr *attr = PLACE(struct ibv_port_attr);
	uint64_t *speed;
	int result = ibv_query_port(context, 1, attr);

	checked("ibv_query_port", result, result);
	IS(attr->state, 4);
	IS(attr->gid_tbl_len, 4);
	IS(attr->lid, 41);
	IS(attr->link_layer, 2);
	IS(attr->flags, 1);
	IS(attr->port_cap_flags2, 42);
	IS(attr->active_speed_ex, 43);
	/* The exported function fills the oldest structure. */
	attr = guard(offsetof(struct ibv_port_attr, port_cap_flags2), _Alignof(struct ibv_port_attr));
	result = old_query_port(context, 1, attr);
	checked("ibv_query_port, the symbol", result, result);
	for (size_t size = 1; size < sizeof(*attr) + 16; size++) {
		attr = guard(size, _Alignof(struct ibv_port_attr));
		result = uverbs_query_port(context, 1, attr, size);
		checked("uverbs_query_port", result, result);
	}
	speed = PLACE(uint64_t);
	result = ibv_query_port_speed(context, 1, speed);
	checked("ibv_query_port_speed", result, result);
	IS(*speed, 4000);
}

static void gids(struct ibv_context *context)
{
	struct ibv_gid_entry *entries = PLACE(struct ibv_gid_entry);
	union ibv_gid *gid;
	GID_TYPE *type;
	ssize_t count;
	int result = ibv_query_gid_ex(context, 1, 2, entries, 0);

	checked("ibv_query_gid_ex", result, result);
	IS(entries->gid_index, 2);
	IS(entries->port_num, 1);
	IS(entries->gid_type, IBV_GID_TYPE_ROCE_V2);
	entries = guard(9 * sizeof(*entries), _Alignof(struct ibv_gid_entry));
	count = ibv_query_gid_table(context, entries, 9, 0);
	checked("ibv_query_gid_table", count, count < 0);
	IS(count, 4);
	IS(entries[3].gid_index, 3);
	gid = PLACE(union ibv_gid);
	result = ibv_query_gid(context, 1, 3, gid);
	checked("ibv_query_gid", result, result);
	IS(be64toh(gid->global.interface_id), 4);
	type = PLACE(GID_TYPE);
	result = ibv_query_gid_type(context, 1, 3, type);
	checked("ibv_query_gid_type", result, result);
	IS(*type, 1);
}

/* As the kernel writes it into a context's event file. */
static void event(struct ibv_context *context)
{
	struct {
		uint64_t element;
		uint32_t event_type, reserved;
	} record = {1, IBV_EVENT_PORT_ERR, 0};
	struct ibv_async_event *event = PLACE(struct ibv_async_event);
	int pipes[2], result;

	if (pipe(pipes) || write(pipes[1], &record, 16) != 16 ||
	    dup2(pipes[0], context->async_fd) < 0) {
		perror("a pipe");
		exit(3);
	}
	close(pipes[0]);
	close(pipes[1]);
	result = ibv_get_async_event(context, event);
	checked("ibv_get_async_event", result, result);
	IS(event->event_type, IBV_EVENT_PORT_ERR);
	IS(event->element.port_num, 1);
}

static void files(struct ibv_context *context)
{
	__be16 *pkey = PLACE(__be16);
	char *text;
	int result = ibv_query_pkey(context, 1, 0, pkey);

	checked("ibv_query_pkey", result, result);
	IS(be16toh(*pkey), 0x8001);
	for (size_t size = 6; size < 12; size++) {
		text = guard(size, 1);
		result = ibv_read_sysfs_file(context->device->ibdev_path, "node_type", text, size);
		checked("ibv_read_sysfs_file", result, result < 0);
	}
}

static void mlx5(struct ibv_context *context)
{
	struct mlx5dv_port *info = PLACE(struct mlx5dv_port);
	unsigned char command[16] = {0x08, 0x0d}, *out;
	int result = mlx5dv_query_port(context, 1, info);

	checked("mlx5dv_query_port", result, result);
	IS(info->flags, 0x3f);
	IS(info->vport, 11);
	IS(info->reg_c0.mask, 0xffff0000);
	for (size_t size = 16; size < 64; size++) {
		out = guard(size, 1);
		result = mlx5dv_devx_general_cmd(context, command, sizeof(command), out, size);
		checked("mlx5dv_devx_general_cmd", result, result);
	}
}

/* The library reads this structure: what follows it is not part of it. */
static struct ibv_context *open_for_devx(struct ibv_device *device)
{
	struct mlx5dv_context_attr *attr = PLACE(struct mlx5dv_context_attr);
	struct ibv_context *context;

	memset(attr, 0, sizeof(*attr));
	/* No release knows these bits, one in each half. */
	for (int bit = 30; bit < 60; bit += 20) {
		attr->comp_mask = (uint64_t)1 << bit;
		context = mlx5dv_open_device(device, attr);
		IS(context == NULL, 1);
		if (context)
			ibv_close_device(context);
	}
	attr->comp_mask = 0;
	attr->flags = mlx5dv_is_supported(device) ? MLX5DV_CONTEXT_FLAGS_DEVX : 0;
	context = mlx5dv_open_device(device, attr);
	/* The canaries are still there, but the structure was written here. */
	checked("mlx5dv_open_device", context ? 0 : -1, !context);
	return context;
}

/*
 * libibumad. Its functions read /sys; those that answer with -DSIMULATED read TREE.
 */

#ifdef SIMULATED
void simulate(void);
int simulated_get_cas_names(const char *root, char cas[][UMAD_CA_NAME_LEN], int max);
int simulated_get_ca_portguids(const char *root, __be64 *portguids, int max);
int simulated_get_ca(const char *root, umad_ca_t *ca);
int simulated_get_port(const char *root, umad_port_t *port);

static void umad_of(const char *tree)
{
	char(*names)[UMAD_CA_NAME_LEN] = guard(2 * UMAD_CA_NAME_LEN, 1);
	__be64 *guids;
	umad_port_t *port;
	umad_ca_t *ca;
	int result = simulated_get_cas_names(tree, names, 2);

	checked("umad_get_cas_names", result, result != 1);
	guids = guard(4 * sizeof(*guids), _Alignof(__be64));
	result = simulated_get_ca_portguids(tree, guids, 4);
	checked("umad_get_ca_portguids", result, result != 2);
	IS(be64toh(guids[1]), 0x0102030405060709);
	port = PLACE(umad_port_t);
	result = simulated_get_port(tree, port);
	checked("umad_get_port", result, result);
	IS(port->portnum, 1);
	IS(port->rate, 100);
	IS(be32toh(port->capmask), 0x10000);
	IS(be64toh(port->gid_prefix), 0xfe80000000000000);
	IS(be64toh(port->port_guid), 0x0102030405060709);
	IS(port->pkeys_size, 1);
	IS(port->pkeys[0], 0x8001);
	IS(strcmp(port->link_layer, "Ethernet"), 0);
	umad_release_port(port);
	checked("umad_release_port", 0, port->pkeys != NULL);
	ca = PLACE(umad_ca_t);
	result = simulated_get_ca(tree, ca);
	checked("umad_get_ca", result, result);
	IS(ca->node_type, 1);
	IS(ca->numports, 1);
	IS(strcmp(ca->hw_ver, "7"), 0);
	IS(be64toh(ca->node_guid), 0x0102030405060708);
	IS(be64toh(ca->system_guid), 0x0102030405060708);
	IS(ca->ports[0] == NULL && ca->ports[1] != NULL && ca->ports[2] == NULL, 1);
	IS(be64toh(ca->ports[1]->port_guid), 0x0102030405060709);
	umad_release_ca(ca);
	checked("umad_release_ca", 0, ca->ports[1] != NULL);
}
#endif

static void umad(void)
{
	struct umad_device_node **head;
	int result = umad_get_cas_names(guard(3 * UMAD_CA_NAME_LEN, 1), 3);

	checked("umad_get_cas_names of /sys", result, false);
	/* Without a device they write zeros. */
	result = umad_get_ca(NULL, PLACE(umad_ca_t));
	checked("umad_get_ca of /sys", result, false);
	if (!result)
		umad_release_ca((void *)inside);
	result = umad_get_port(NULL, 0, PLACE(umad_port_t));
	checked("umad_get_port of /sys", result, false);
	if (!result)
		umad_release_port((void *)inside);
	head = PLACE(struct umad_device_node *);
	*head = umad_get_ca_device_list();
	result = umad_sort_ca_device_list(head, 0);
	checked("umad_sort_ca_device_list", result, result);
	umad_free_ca_device_list(*head);
	/* Last, since it writes nothing where there is no device. */
	result = umad_get_ca_portguids(NULL, guard(10 * sizeof(__be64), _Alignof(__be64)), 10);
	*inside = 0;
	checked("umad_get_ca_portguids of /sys", result, false);
}

int main(int argc, char **argv)
{
	struct ibv_device **list;
	int *count;

#ifdef SIMULATED
	if (argc != 2) {
		fprintf(stderr, "canaries TREE\n");
		return 2;
	}
	setenv("SYSFS_PATH", argv[1], 1);
	simulate();
	umad_of(argv[1]);
#else
	(void)argc;
	(void)argv;
#endif
	umad();
	count = PLACE(int);
	list = ibv_get_device_list(count);
	checked("ibv_get_device_list", *count, !list);
	for (int place = 0; list && list[place]; place++) {
		struct ibv_context *context = open_for_devx(list[place]);

		if (!context)
			context = ibv_open_device(list[place]);
		if (!context)
			continue;
		/* Fields that the library wrote, by the program's own header. */
		IS(context->device == list[place], 1);
		IS(context->num_comp_vectors, 0);
		IS(context->cmd_fd >= 0 && context->async_fd >= 0, 1);
		IS(strcmp(list[place]->name, "sim0"), 0);
		IS(strcmp(list[place]->dev_name, "uverbs0"), 0);
		device(context);
		port(context);
		gids(context);
		files(context);
		mlx5(context);
		event(context);
		IS(ibv_close_device(context), 0);
	}
	if (list)
		ibv_free_device_list(list);
	printf("%zu bits: canaries around %d structures, %d touched, %d wrong answers\n",
	       8 * sizeof(void *), structures, touched, wrong);
	return touched || wrong;
}
