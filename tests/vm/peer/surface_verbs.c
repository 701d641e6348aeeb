/*
 * Every function of libibverbs that uverbs has, with good and bad arguments; see surface.h.
 *
 *   surface_verbs                      all devices
 *   surface_verbs --wait-events N DEV  "open", then the next N events of a device; a minute at most
 */
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "surface.h"

#ifdef UVERBS_H
#include <uverbs.h>
#else
#include <infiniband/verbs.h>

/* Exported, but declared in no public header. */
enum ibv_gid_type_sysfs {
	IBV_GID_TYPE_SYSFS_IB_ROCE_V1,
	IBV_GID_TYPE_SYSFS_ROCE_V2,
};
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       enum ibv_gid_type_sysfs *type);
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
#endif

#define CONTEXTS 8
#define THREADS 8
#define ROUNDS 200

/* Room for the largest table that one call may ask for: a length has 16 bits. */
#define ENTRIES 2047

/*
 * What the inline functions of verbs.h call: entries of the function table.
 */

static int query_port_sized(struct ibv_context *context, uint8_t port, void *attr, size_t size)
{
#ifdef UVERBS_H
	return uverbs_query_port(context, port, attr, size);
#else
	struct verbs_context *table = verbs_get_ctx_op(context, query_port);

	return table ? table->query_port(context, port, attr, size) : -1;
#endif
}

/* The function of that name, which the macro hides; it fills the structure as it was first. */
static int query_port_first(struct ibv_context *context, uint8_t port, void *attr)
{
#ifdef UVERBS_H
	return uverbs_query_port(context, port, attr, offsetof(struct ibv_port_attr, port_cap_flags2));
#else
	return (ibv_query_port)(context, port, attr);
#endif
}

static int query_device_sized(struct ibv_context *context,
			      const struct ibv_query_device_ex_input *input, void *attr,
			      size_t size)
{
#ifdef UVERBS_H
	return uverbs_query_device_ex(context, input, attr, size);
#else
	struct verbs_context *table = verbs_get_ctx_op(context, query_device_ex);

	return table ? table->query_device_ex(context, input, attr, size) : -1;
#endif
}

/*
 * What needs no device
 */

/* For the opcodes between two others rdma-core has NULL, which is of no use; uverbs has this. */
static const char *word(const char *text)
{
	return text ? text : "unknown";
}

static void words(void)
{
	for (int i = -2; i <= IBV_NODE_UNSPECIFIED + 2; i++)
		printf("node type %d: %s\n", i, word(ibv_node_type_str((enum ibv_node_type)i)));
	for (int i = -2; i <= IBV_PORT_ACTIVE_DEFER + 2; i++)
		printf("port state %d: %s\n", i, word(ibv_port_state_str((enum ibv_port_state)i)));
	for (int i = -2; i <= IBV_WC_TM_RNDV_INCOMPLETE + 2; i++)
		printf("wc status %d: %s\n", i, word(ibv_wc_status_str((enum ibv_wc_status)i)));
#if RDMA_CORE >= 65
	for (int i = -2; i <= IBV_EVENT_DEVICE_SPEED_CHANGE + 2; i++)
#else
	for (int i = -2; i <= IBV_EVENT_WQ_FATAL; i++)
#endif
		printf("event %d: %s\n", i, word(ibv_event_type_str((enum ibv_event_type)i)));
	printf("event 1000: %s\n", word(ibv_event_type_str((enum ibv_event_type)1000)));
#if RDMA_CORE >= 56
	for (int i = -2; i <= IBV_WR_ATOMIC_WRITE + 2; i++)
		printf("opcode %d: %s\n", i, word(ibv_wr_opcode_str((enum ibv_wr_opcode)i)));
#endif
}

static void make_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	if (!file || fputs(text, file) < 0 || fclose(file)) {
		perror(path);
		exit(3);
	}
}

static void read_file(const char *dir, const char *name, size_t size)
{
	uint8_t *buffer = guarded(size);
	int result;

	errno = 0;
	result = ibv_read_sysfs_file(dir, name, (char *)buffer, size);
	printf("read %s %zu, ", name, size);
	print_result("length", result);
	print_answer(result < 0, buffer, size);
}

static void sysfs(void)
{
	static const char *const names[] = {"line", "lines", "bare", "empty"};
	char dir[] = "/tmp/surface-XXXXXX", path[256];

	printf("sysfs: %s\n", ibv_get_sysfs_path());
	if (!mkdtemp(dir)) {
		perror(dir);
		exit(3);
	}
	make_file(dir, "line", "hello\n");
	make_file(dir, "lines", "two\nlines\n\n");
	make_file(dir, "bare", "hello");
	make_file(dir, "empty", "");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (size_t size = 0; size <= 13; size++)
			read_file(dir, names[i], size);
		read_file(dir, names[i], 4096);
	}
	read_file(dir, "missing", 16);
	read_file(dir, ".", 16);
	read_file(dir, "line/line", 16);
	read_file("", "missing", 16);
	/* dir/file, also with more slashes or without a folder. */
	read_file(dir, "/line", 16);
	read_file("/nowhere", "/proc/version", 16);
	read_file("", "proc/version", 4096);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

/*
 * Devices
 */

static void print_device(struct ibv_device *device)
{
	printf("device %s: index %d guid %016" PRIx64 " node %d transport %d\n",
	       ibv_get_device_name(device), ibv_get_device_index(device),
	       be64toh(ibv_get_device_guid(device)), device->node_type, device->transport_type);
	printf("device %s: name %s dev_name %s dev_path %s ibdev_path %s\n",
	       ibv_get_device_name(device), device->name, device->dev_name, device->dev_path,
	       device->ibdev_path);
	printf("device %s: ", device->name);
	read_file(device->ibdev_path, "node_type", 64);
}

static struct ibv_device **device_list(int *count)
{
	struct ibv_device **list;

	errno = 0;
	list = ibv_get_device_list(count);
	if (!list)
		printf("list: NULL errno %d count %d\n", errno, count ? *count : -1);
	return list;
}

/* The list twice, and once without a place for its length: the same devices in the same order. */
static void lists(void)
{
	int counts[2] = {-5, -5}, length = 0;
	struct ibv_device **first = device_list(&counts[0]), **second = device_list(&counts[1]);
	struct ibv_device **third = device_list(NULL);

	if (first && second && third) {
		printf("list: %d %d\n", counts[0], counts[1]);
		for (; first[length] && second[length] && third[length]; length++)
			printf("list %d: %s %d %d\n", length, first[length]->name,
			       !strcmp(first[length]->name, second[length]->name),
			       !strcmp(first[length]->name, third[length]->name));
		printf("list ends: %d %d %d\n", !first[length], !second[length], !third[length]);
	}
	if (first)
		ibv_free_device_list(first);
	/* A device that is in another list too outlives this one. */
	for (int i = 0; second && second[i]; i++)
		print_device(second[i]);
	if (second)
		ibv_free_device_list(second);
	if (third)
		ibv_free_device_list(third);
}

/*
 * What a device can do
 */

static void print_base(const struct ibv_device_attr *base)
{
	printf(" fw '%s' node %016" PRIx64 " sys_image %016" PRIx64 " max_mr_size %" PRIu64
	       " page_size_cap %" PRIu64 " vendor %u part %u hw %u",
	       base->fw_ver, be64toh(base->node_guid), be64toh(base->sys_image_guid),
	       base->max_mr_size, base->page_size_cap, base->vendor_id, base->vendor_part_id,
	       base->hw_ver);
	printf(" qp %d wr %d flags %#x sge %d rd %d cq %d cqe %d mr %d pd %d", base->max_qp,
	       base->max_qp_wr, base->device_cap_flags, base->max_sge, base->max_sge_rd, base->max_cq,
	       base->max_cqe, base->max_mr, base->max_pd);
	printf(" rd_atom %d %d %d %d %d atomic %d ee %d rdd %d mw %d raw %d %d", base->max_qp_rd_atom,
	       base->max_ee_rd_atom, base->max_res_rd_atom, base->max_qp_init_rd_atom,
	       base->max_ee_init_rd_atom, base->atomic_cap, base->max_ee, base->max_rdd, base->max_mw,
	       base->max_raw_ipv6_qp, base->max_raw_ethy_qp);
	printf(" mcast %d %d %d ah %d fmr %d %d srq %d %d %d pkeys %u ack_delay %u ports %u\n",
	       base->max_mcast_grp, base->max_mcast_qp_attach, base->max_total_mcast_qp_attach,
	       base->max_ah, base->max_fmr, base->max_map_per_fmr, base->max_srq, base->max_srq_wr,
	       base->max_srq_sge, base->max_pkeys, base->local_ca_ack_delay, base->phys_port_cnt);
}

static void print_extended(const struct ibv_device_attr_ex *attr)
{
	printf("device_ex: comp_mask %#x odp %#" PRIx64 " %#x %#x %#x timestamp %#" PRIx64
	       " clock %" PRIu64 " flags %#" PRIx64 " tso %u %#x",
	       attr->comp_mask, attr->odp_caps.general_caps,
	       attr->odp_caps.per_transport_caps.rc_odp_caps,
	       attr->odp_caps.per_transport_caps.uc_odp_caps,
	       attr->odp_caps.per_transport_caps.ud_odp_caps, attr->completion_timestamp_mask,
	       attr->hca_core_clock, attr->device_cap_flags_ex, attr->tso_caps.max_tso,
	       attr->tso_caps.supported_qpts);
	printf(" rss %#x %u %u %#" PRIx64 " %#x wq %u pacing %u %u %#x raw %#x",
	       attr->rss_caps.supported_qpts, attr->rss_caps.max_rwq_indirection_tables,
	       attr->rss_caps.max_rwq_indirection_table_size, attr->rss_caps.rx_hash_fields_mask,
	       attr->rss_caps.rx_hash_function, attr->max_wq_type_rq,
	       attr->packet_pacing_caps.qp_rate_limit_min, attr->packet_pacing_caps.qp_rate_limit_max,
	       attr->packet_pacing_caps.supported_qpts, attr->raw_packet_caps);
	printf(" tm %u %u %#x %u %u moderation %u %u dm %" PRIu64 " pci_atomic %#x %#x %#x",
	       attr->tm_caps.max_rndv_hdr_size, attr->tm_caps.max_num_tags, attr->tm_caps.flags,
	       attr->tm_caps.max_ops, attr->tm_caps.max_sge, attr->cq_mod_caps.max_cq_count,
	       attr->cq_mod_caps.max_cq_period, attr->max_dm_size, attr->pci_atomic_caps.fetch_add,
	       attr->pci_atomic_caps.swap, attr->pci_atomic_caps.compare_swap);
	printf(" xrc_odp %#x", attr->xrc_odp_caps);
#if RDMA_CORE >= 44
	printf(" ports_ex %u", attr->phys_port_cnt_ex);
#endif
	printf("\n");
}

/* Returns the number of ports. */
static uint32_t device(struct ibv_context *context)
{
	struct ibv_query_device_ex_input input = {.comp_mask = 0};
	struct ibv_device_attr_ex *attr = (void *)guarded(sizeof(*attr));
	struct ibv_device_attr *base = (void *)guarded(sizeof(*base));
	uint32_t ports;
	int result = ibv_query_device(context, base);

	printf("device: %d", result);
	if (!result)
		print_base(base);
	printf("device:");
	print_answer(result, (void *)base, sizeof(*base));

	result = ibv_query_device_ex(context, NULL, attr);
	printf("device_ex: %d", result);
#if RDMA_CORE >= 44
	ports = result ? 0 : attr->phys_port_cnt_ex;
#else
	ports = result ? 0 : attr->orig_attr.phys_port_cnt;
#endif
	if (!result) {
		print_base(&attr->orig_attr);
		print_extended(attr);
	}
	printf("device_ex:");
	print_answer(result, (void *)attr, sizeof(*attr));

	/* Every size, as an older or a newer program has it. */
	for (size_t size = 0; size <= sizeof(*attr) + 24; size++) {
		uint8_t *buffer = guarded(size);

		result = query_device_sized(context, NULL, buffer, size);
		printf("device_ex %zu: %d", size, result);
		print_answer(result, buffer, size);
	}
	for (int mask = 0; mask <= 2; mask++) {
		attr = (void *)guarded(sizeof(*attr));
		input.comp_mask = mask == 2 ? UINT32_MAX : (uint32_t)mask;
		result = ibv_query_device_ex(context, &input, attr);
		printf("device_ex mask %#x: %d", input.comp_mask, result);
		print_answer(result, (void *)attr, sizeof(*attr));
	}
#if RDMA_CORE >= 65
	for (size_t size = 0; size <= sizeof(struct ibv_comp_cntr_caps) + 8; size += 4) {
		uint8_t *caps = guarded(size);

		result = _ibv_query_comp_cntr_caps(context, (void *)caps, size);
		printf("comp_cntr_caps %zu: %d", size, result);
		print_answer(result, caps, size);
	}
#endif
	return ports;
}

/*
 * Ports
 */

static void print_port(const struct ibv_port_attr *attr)
{
	printf(" state %d mtu %d %d gids %d cap %#x max_msg_sz %u bad_pkey %u qkey_viol %u pkeys %u",
	       attr->state, attr->max_mtu, attr->active_mtu, attr->gid_tbl_len, attr->port_cap_flags,
	       attr->max_msg_sz, attr->bad_pkey_cntr, attr->qkey_viol_cntr, attr->pkey_tbl_len);
	printf(" lid %u sm_lid %u lmc %u vl %u sm_sl %u timeout %u init %u width %u speed %u phys %u",
	       attr->lid, attr->sm_lid, attr->lmc, attr->max_vl_num, attr->sm_sl,
	       attr->subnet_timeout, attr->init_type_reply, attr->active_width, attr->active_speed,
	       attr->phys_state);
	printf(" link %u flags %#x cap2 %#x", attr->link_layer, attr->flags, attr->port_cap_flags2);
#if RDMA_CORE >= 56
	printf(" speed_ex %u", attr->active_speed_ex);
#endif
	printf("\n");
}

static void port(struct ibv_context *context, uint8_t number)
{
	const size_t first = offsetof(struct ibv_port_attr, port_cap_flags2);
	struct ibv_port_attr *attr = (void *)guarded(sizeof(*attr));
	uint8_t *old = guarded(first);
	int result = ibv_query_port(context, number, attr);

	printf("port %u: %d", number, result);
	if (!result)
		print_port(attr);
	/* Of a failure it is zero. */
	printf("port %u:", number);
	print_bytes((void *)attr, sizeof(*attr));
	result = query_port_first(context, number, old);
	printf("port %u first: %d", number, result);
	print_answer(result, old, first);
}

static void port_sizes(struct ibv_context *context, uint8_t number)
{
	/* The next release fills what follows a release's own structure. */
	const size_t last = sizeof(struct ibv_port_attr) + (RDMA_CORE < 56 ? 0 : 24);

	for (size_t size = 0; size <= last; size++) {
		uint8_t *attr = guarded(size);
		int result = query_port_sized(context, number, attr, size);

		printf("port %u size %zu: %d", number, size, result);
		print_answer(result, attr, size);
	}
}

static void port_speed(struct ibv_context *context, uint32_t number)
{
#if RDMA_CORE >= 65
	uint64_t speed = 0xabab;
	int result = ibv_query_port_speed(context, number, &speed);

	/* Of a failure the man page promises nothing else. */
	printf("speed %" PRIu32 ": %d", number, result);
	if (!result)
		printf(" %" PRIu64, speed);
	printf("\n");
#else
	(void)context;
	(void)number;
#endif
}

/*
 * GIDs
 */

static void print_gid(const union ibv_gid *gid)
{
	for (int i = 0; i < 16; i++)
		printf("%02x", gid->raw[i]);
}

static void gid(struct ibv_context *context, uint8_t port, int index)
{
	union ibv_gid *value = (void *)guarded(sizeof(*value));
	enum ibv_gid_type_sysfs type = (enum ibv_gid_type_sysfs)7;
	int result;

	errno = 0;
	result = ibv_query_gid(context, port, index, value);
	printf("gid %u %d, ", port, index);
	print_result("result", result);
	print_answer(result, (void *)value, sizeof(*value));
	errno = 0;
	result = ibv_query_gid_type(context, port, (unsigned int)index, &type);
	printf("gid type %u %d, ", port, index);
	print_result("result", result);
	printf(" type %d\n", result ? -1 : (int)type);
}

static void gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, uint32_t flags)
{
	struct ibv_gid_entry *entry = (void *)guarded(sizeof(*entry));
	int result = ibv_query_gid_ex(context, port, index, entry, flags);

	printf("gid_ex %" PRIu32 " %" PRIu32 " %" PRIu32 ": %d", port, index, flags, result);
	if (!result) {
		printf(" %" PRIu32 " %" PRIu32 " ", entry->port_num, entry->gid_index);
		print_gid(&entry->gid);
		printf(" type %" PRIu32 " ifindex %" PRIu32, entry->gid_type, entry->ndev_ifindex);
	}
	print_answer(result, (void *)entry, sizeof(*entry));
}

static void gid_ex_sizes(struct ibv_context *context, uint32_t port, uint32_t index)
{
	static const size_t sizes[] = {0,  1,  8,  16, 20, 24, 28,   31,   32,
				       33, 36, 40, 48, 64, 96, 4096, 65535};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *entry = guarded(sizes[i]);
		int result = _ibv_query_gid_ex(context, port, index, (void *)entry, 0, sizes[i]);

		printf("gid_ex size %zu: %d", sizes[i], result);
		print_answer(result, entry, sizes[i]);
	}
}

/* `asked` entries of this size, in memory for `room` bytes. */
static void gid_table(struct ibv_context *context, size_t asked, uint32_t flags, size_t entry_size,
		      size_t room)
{
	uint8_t *entries = guarded(room);
	ssize_t count = _ibv_query_gid_table(context, (void *)entries, asked, flags, entry_size);

	printf("gid_table %zu of %zu flags %" PRIu32 ": %zd", asked, entry_size, flags, count);
	print_answer(count < 0, entries, room);
}

static void gid_tables(struct ibv_context *context)
{
	static const size_t entry_sizes[] = {0, 1, 4, 16, 31, 32, 33, 40, 64};
	const size_t full = sizeof(struct ibv_gid_entry);
	struct ibv_gid_entry *entries = (void *)guarded(ENTRIES * full);
	ssize_t count = ibv_query_gid_table(context, entries, ENTRIES, 0);

	printf("gid_table: %zd\n", count);
	for (ssize_t i = 0; i < count; i++) {
		printf("gid_table %zd: %" PRIu32 " %" PRIu32 " ", i, entries[i].port_num,
		       entries[i].gid_index);
		print_gid(&entries[i].gid);
		printf(" type %" PRIu32 " ifindex %" PRIu32 "\n", entries[i].gid_type,
		       entries[i].ndev_ifindex);
	}
	printf("gid_table:");
	print_answer(count < 0, (void *)entries, ENTRIES * full);
	if (count < 0)
		return;
	for (ssize_t room = 0; room <= count + 2; room++)
		gid_table(context, (size_t)room, 0, full, (size_t)room * full);
	gid_table(context, 256, 0, full, 256 * full);
	/*
	 * More than any length can be. (Of more than 16 bits can say rdma-core makes EINVAL, and
	 * uverbs as many as there are.)
	 */
	gid_table(context, SIZE_MAX / full, 0, full, 4096);
	gid_table(context, SIZE_MAX, 0, full, 4096);
	gid_table(context, 256, 1, full, 256 * full);
	gid_table(context, 256, UINT32_MAX, full, 256 * full);
	for (size_t i = 0; i < sizeof(entry_sizes) / sizeof(entry_sizes[0]); i++)
		gid_table(context, 256, 0, entry_sizes[i], 256 * entry_sizes[i]);
}

/*
 * P_Keys
 */

static void pkey(struct ibv_context *context, uint8_t port, int index)
{
	uint8_t *value = guarded(sizeof(__be16));
	int result;

	errno = 0;
	result = ibv_query_pkey(context, port, index, (void *)value);
	printf("pkey %u %d, ", port, index);
	print_result("result", result);
	if (!result)
		printf(" 0x%02x%02x", value[0], value[1]);
	print_answer(result, value, sizeof(__be16));
}

static void pkey_index(struct ibv_context *context, uint8_t port, uint16_t value)
{
	errno = 0;
	printf("pkey index %u %#x, ", port, value);
	print_result("result", ibv_get_pkey_index(context, port, htobe16(value)));
	printf("\n");
}

/* The tables of a port, from before their beginning to after their end. */
static void tables(struct ibv_context *context, uint8_t number)
{
	static const uint16_t pkeys[] = {0xffff, 0x7fff, 0x8001, 0x1234, 0};
	struct ibv_port_attr attr;

	memset(&attr, 0, sizeof(attr));
	if (ibv_query_port(context, number, &attr))
		memset(&attr, 0, sizeof(attr));
	gid(context, number, -1);
	pkey(context, number, -1);
	for (int index = 0; index < attr.gid_tbl_len + 2; index++) {
		gid(context, number, index);
		gid_ex(context, number, (uint32_t)index, 0);
	}
	gid(context, number, 65536);
	gid(context, number, INT32_MAX);
	gid_ex(context, number, 65536, 0);
	gid_ex(context, number, INT32_MAX, 0);
	gid_ex(context, number, UINT32_MAX, 0);
	for (int index = 0; index < attr.pkey_tbl_len + 2; index++)
		pkey(context, number, index);
	pkey(context, number, 65536);
	for (size_t i = 0; i < sizeof(pkeys) / sizeof(pkeys[0]); i++)
		pkey_index(context, number, pkeys[i]);
}

static void ports(struct ibv_context *context, uint32_t count)
{
	/* More than this has no 8-bit number; representors of thousands of functions may be ports. */
	uint8_t last = count > 254 ? 254 : (uint8_t)count;

	for (unsigned int number = 0; number <= last + 1u; number++) {
		port(context, (uint8_t)number);
		port_speed(context, number);
		tables(context, (uint8_t)number);
	}
	port(context, 255);
	port_speed(context, 255);
	port_speed(context, 256);
	port_speed(context, 257);
	port_speed(context, UINT32_MAX);
	tables(context, 255);
	port_sizes(context, 1);
	port_sizes(context, 0);
	gid_ex(context, 0, 0, 0);
	gid_ex(context, 256, 0, 0);
	gid_ex(context, 257, 0, 0);
	gid_ex(context, UINT32_MAX, 0, 0);
	gid_ex(context, 1, 0, 1);
	gid_ex(context, 1, 0, UINT32_MAX);
	gid_ex_sizes(context, 1, 0);
	gid_tables(context);
}

/*
 * Contexts
 */

static struct ibv_context *open_context(struct ibv_device *device)
{
	struct ibv_context *context;

	errno = 0;
	context = ibv_open_device(device);
	if (!context) {
		printf("open: NULL errno %d\n", errno);
		return NULL;
	}
	printf("open: cmd_fd %d async_fd %d vectors %d device %d\n", context->cmd_fd >= 0,
	       context->async_fd >= 0, context->num_comp_vectors, context->device == device);
	return context;
}

static void close_context(struct ibv_context *context)
{
	printf("close: %d\n", ibv_close_device(context));
}

/* A short answer that shows whether a context works. */
static void proof(const char *what, struct ibv_context *context)
{
	struct ibv_gid_entry entry;
	int result;

	memset(&entry, 0, sizeof(entry));
	result = ibv_query_gid_ex(context, 1, 0, &entry, 0);
	printf("%s: %s gid %d ", what, ibv_get_device_name(context->device), result);
	print_gid(&entry.gid);
	printf("\n");
}

static void many_contexts(struct ibv_device *device)
{
	struct ibv_context *contexts[CONTEXTS];

	for (int i = 0; i < CONTEXTS; i++)
		contexts[i] = open_context(device);
	/* Others still work when some are closed. */
	for (int i = 0; i < CONTEXTS; i += 2)
		if (contexts[i])
			close_context(contexts[i]);
	for (int i = 1; i < CONTEXTS; i += 2)
		if (contexts[i]) {
			proof("one of many", contexts[i]);
			close_context(contexts[i]);
		}
}

/* Owns the descriptor. */
static void import(const char *what, int fd)
{
	struct ibv_context *context;

	errno = 0;
	context = ibv_import_device(fd);
	if (!context) {
		printf("import %s: NULL errno %d\n", what, errno);
		/* Whether it is still there is not said for every failure. */
		if (fd >= 0)
			close(fd);
		return;
	}
	printf("import %s: cmd_fd is it %d async_fd %d vectors %d\n", what, context->cmd_fd == fd,
	       context->async_fd >= 0, context->num_comp_vectors);
	proof("imported", context);
	port(context, 1);
	close_context(context);
	printf("import %s: closed with it %d\n", what, fcntl(fd, F_GETFD) < 0);
}

static void imports(struct ibv_context *context)
{
	char node[IBV_SYSFS_NAME_MAX + 32];

	snprintf(node, sizeof(node), "/dev/infiniband/%s", context->device->dev_name);
	import("of a node without a context", open(node, O_RDWR));
	import("of an open context", dup(context->cmd_fd));
	proof("after the import", context);
	import("of its event file", dup(context->async_fd));
	import("of no file", -1);
	import("of a number without a file", 1 << 20);
	import("of a character device", open("/dev/null", O_RDWR));
	import("of a regular file", open("/proc/self/status", O_RDONLY));
	import("of a folder", open("/", O_RDONLY));
}

static void no_event(struct ibv_context *context)
{
	struct ibv_async_event event;
	int flags = fcntl(context->async_fd, F_GETFL);

	memset(&event, PATTERN, sizeof(event));
	if (flags < 0 || fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		perror("fcntl");
		exit(3);
	}
	errno = 0;
	print_result("event", ibv_get_async_event(context, &event));
	printf("\n");
	/* What belongs to no queue needs no answer. */
	memset(&event, 0, sizeof(event));
	event.event_type = IBV_EVENT_PORT_ACTIVE;
	event.element.port_num = 1;
	ibv_ack_async_event(&event);
	event.event_type = IBV_EVENT_DEVICE_FATAL;
	ibv_ack_async_event(&event);
	fcntl(context->async_fd, F_SETFL, flags);
}

/*
 * Threads
 */

struct answer {
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	struct ibv_gid_entry table[64];
	struct ibv_device_attr device;
	ssize_t count;
	int results[4];
};

struct worker {
	pthread_t thread;
	struct ibv_context *context;
	const struct answer *expected;
	unsigned int different;
};

static void ask(struct ibv_context *context, struct answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	answer->results[0] = ibv_query_port(context, 1, &answer->port);
	answer->results[1] = ibv_query_gid_ex(context, 1, 0, &answer->entry, 0);
	answer->count = ibv_query_gid_table(context, answer->table, 64, 0);
	answer->results[2] = ibv_query_device(context, &answer->device);
	answer->results[3] = ibv_query_gid_ex(context, 77, 0, &answer->entry, 0);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct answer *answer = malloc(sizeof(*answer));

	for (int i = 0; answer && i < ROUNDS; i++) {
		ask(worker->context, answer);
		worker->different += memcmp(answer, worker->expected, sizeof(*answer)) != 0;
	}
	worker->different += !answer;
	free(answer);
	return NULL;
}

static void threads(struct ibv_context *context)
{
	struct worker workers[THREADS];
	struct answer expected;
	unsigned int different = 0;

	ask(context, &expected);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.context = context, .expected = &expected};
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) {
			fprintf(stderr, "no thread\n");
			exit(3);
		}
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		different += workers[i].different;
	}
	printf("threads: %d different answers: %u\n", THREADS, different);
}

/*
 * The whole
 */

static int all(void)
{
	struct ibv_context **contexts;
	struct ibv_device **list;
	int count = 0;

	words();
	sysfs();
	lists();
	list = device_list(&count);
	if (!list)
		return 0;
	contexts = calloc((size_t)count + 1, sizeof(*contexts));
	if (!contexts) {
		perror("calloc");
		return 3;
	}
	for (int i = 0; i < count; i++) {
		printf("== %s\n", list[i]->name);
		many_contexts(list[i]);
		contexts[i] = open_context(list[i]);
	}
	/* What is open stays. */
	ibv_free_device_list(list);
	for (int i = 0; i < count; i++) {
		struct ibv_context *context = contexts[i];

		if (!context)
			continue;
		printf("== %s\n", context->device->name);
		print_device(context->device);
		proof("without the list", context);
		ports(context, device(context));
		imports(context);
		no_event(context);
		threads(context);
		close_context(context);
	}
	free(contexts);
	return 0;
}

/* How far every time limit is stretched, for slow machines. */
static int time_scale(void)
{
	const char *scale = getenv("UVERBS_VM_TIME_SCALE");
	int number = scale ? atoi(scale) : 1;

	return number > 1 ? number : 1;
}

static int wait_event(struct ibv_context *context)
{
	struct pollfd file = {.fd = context->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	int ready = poll(&file, 1, 60 * 1000 * time_scale());

	if (ready != 1) {
		printf("no event\n");
		return -1;
	}
	memset(&event, 0, sizeof(event));
	errno = 0;
	print_result("event", ibv_get_async_event(context, &event));
	printf(" type %d (%s) port %d\n", event.event_type, word(ibv_event_type_str(event.event_type)),
	       event.element.port_num);
	fflush(stdout);
	ibv_ack_async_event(&event);
	return 0;
}

static int events(const char *name, int count)
{
	struct ibv_device **list = device_list(NULL);
	struct ibv_context *context = NULL;
	int status = 0;

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(list[i]->name, name))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!context) {
		printf("%s could not be opened\n", name);
		return 1;
	}
	printf("open\n");
	fflush(stdout);
	for (int i = 0; i < count && !status; i++)
		status = wait_event(context);
	close_context(context);
	return status ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 1)
		return all();
	if (argc == 4 && !strcmp(argv[1], "--wait-events"))
		return events(argv[3], atoi(argv[2]));
	fprintf(stderr, "surface_verbs | --wait-events N DEV\n");
	return 2;
}
