/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * uverbs.h: RDMA devices, ports, GID tables and GUIDs of a Linux host.
 *
 * The functions, their arguments and the layouts are those of rdma-core 65 (<infiniband/verbs.h>,
 * <infiniband/mlx5dv.h>, <infiniband/umad.h>). A program that was written for rdma-core's headers, of
 * release 33 or later, also links with this library. This header is for systems without rdma-core's
 * headers. A file includes either this header or rdma-core's.
 *
 * src/capi/shared makes a shared library with rdma-core's symbol versions, for programs that are
 * already compiled. It has every function that is declared here, and no function that makes or moves
 * something (protection domains, queues, memory regions). If rdma-core's own library is loaded too
 * (LD_PRELOAD), it cannot make such objects on a context of this library: it returns NULL, with errno
 * EOPNOTSUPP or the kernel's error.
 *
 * Each function that can fail says what it returns then. Unless it says something else, it is one of
 * three:
 *   - the errno value, a positive number; the variable errno may hold anything;
 *   - a negative number (for some functions the negative errno value);
 *   - NULL, with the variable errno set.
 * Big-endian values ("network byte order") have a type __be16, __be32 or __be64. be64toh(3) and
 * similar functions turn them into numbers.
 *
 * Several threads may call every function at once, also for one context. No thread may use what
 * another thread closes, frees or releases.
 *
 * A thread can be cancelled (pthread_cancel(3)) in ibv_get_async_event(), which waits. No other function is a
 * cancellation point: a thread that calls only these has to call pthread_testcancel(3) too. The
 * asynchronous type of cancellation must not be set in a function of this library.
 */
#ifndef UVERBS_CAPI_H
#define UVERBS_CAPI_H

#if defined(INFINIBAND_VERBS_H) || defined(_MLX5DV_H_) || defined(_UMAD_H)
#error "uverbs.h declares what rdma-core's headers declare: include the one or the others"
#endif

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The kernel's names of big-endian integers. musl may come without the kernel's headers. */
#ifdef __has_include
#if !__has_include(<linux/types.h>)
#define UVERBS_NO_LINUX_TYPES
#endif
#endif
#ifdef UVERBS_NO_LINUX_TYPES
#undef UVERBS_NO_LINUX_TYPES
typedef unsigned short __be16;
typedef unsigned int __be32;
typedef unsigned long long __be64;
#else
#include <linux/types.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Devices: <infiniband/verbs.h>
 */

enum ibv_node_type {
	IBV_NODE_UNKNOWN = -1,
	IBV_NODE_CA = 1,	/* a network adapter, InfiniBand or RoCE */
	IBV_NODE_SWITCH,
	IBV_NODE_ROUTER,
	IBV_NODE_RNIC,		/* iWARP */
	IBV_NODE_USNIC,
	IBV_NODE_USNIC_UDP,
	IBV_NODE_UNSPECIFIED
};

enum ibv_transport_type {
	IBV_TRANSPORT_UNKNOWN = -1,
	IBV_TRANSPORT_IB = 0,	/* InfiniBand and RoCE */
	IBV_TRANSPORT_IWARP,
	IBV_TRANSPORT_USNIC,
	IBV_TRANSPORT_USNIC_UDP,
	IBV_TRANSPORT_UNSPECIFIED
};

enum {
	IBV_SYSFS_NAME_MAX = 64,
	IBV_SYSFS_PATH_MAX = 256
};

/* Valid as long as a list or a context that contains it. */
struct ibv_device {
	void (*_ops[2])(void);			/* not used */
	enum ibv_node_type node_type;
	enum ibv_transport_type transport_type;
	char name[IBV_SYSFS_NAME_MAX];		/* such as "mlx5_0" */
	char dev_name[IBV_SYSFS_NAME_MAX];	/* such as "uverbs0" */
	char dev_path[IBV_SYSFS_PATH_MAX];	/* its folder below /sys/class/infiniband_verbs */
	char ibdev_path[IBV_SYSFS_PATH_MAX];	/* its folder below /sys/class/infiniband */
};

/* Operations that rdma-core's headers call. Not for programs. */
struct ibv_context_ops {
	void (*functions[32])(void);
};

/* An open device. Only ibv_open_device() and similar functions make one. */
struct ibv_context {
	struct ibv_device *device;
	struct ibv_context_ops ops;
	int cmd_fd;			/* the device's uverbs node, open */
	int async_fd;			/* to poll(2) for events; may be made O_NONBLOCK */
	int num_comp_vectors;
	pthread_mutex_t mutex;		/* not used here */
	void *abi_compat;		/* not for programs */
};

/*
 * All devices: an array that ends with NULL. Their number goes to *num_devices, unless num_devices is
 * NULL. Without devices the array is empty; this is not a failure. A device without a node in
 * /dev/infiniband is left out, and so is one that cannot be read or whose node cannot be found out, unless none can be
 * read.
 * Failure: NULL and errno; ENOSYS if the kernel has no RDMA, or SYSFS_PATH names no sysfs; EPERM; EMFILE, ENFILE or
 * ENOMEM, also if only one device cannot be read for that reason; ENAMETOOLONG: there is a device, and SYSFS_PATH is
 * too long for its structure; or the errno of reading the list of devices, or the first device if none can be read
 * (ENOENT, ENOTDIR, EACCES, EIO, EPROTO, …).
 */
struct ibv_device **ibv_get_device_list(int *num_devices);

/* Frees a list, and those of its devices that are not open. */
void ibv_free_device_list(struct ibv_device **list);

/* The device's name. It is valid as long as the device. NULL for NULL, without an errno. */
const char *ibv_get_device_name(struct ibv_device *device);

/* The GUID of the device's node. Failure: 0, without an errno. */
__be64 ibv_get_device_guid(struct ibv_device *device);

/* The kernel's number of the device. Failure: -1, if the kernel gives none. */
int ibv_get_device_index(struct ibv_device *device);

/*
 * Opens a device. The list that it came from may be freed afterwards.
 * Failure: NULL and errno, for example EACCES, or ENOENT if the device was removed.
 */
struct ibv_context *ibv_open_device(struct ibv_device *device);

/*
 * A context of the device that cmd_fd has open. cmd_fd is a duplicate of another context's cmd_fd. The
 * new context owns the descriptor.
 * Failure: NULL and errno. EINVAL: not a character device; ENODEV: not the node of a device that
 * ibv_get_device_list() lists; as ibv_get_device_list(): the devices cannot be listed; EOPNOTSUPP: the
 * driver does not support it; as ibv_open_device(): it is not known which driver the device has. After
 * these errors the caller still owns the descriptor. If the kernel refuses later, the descriptor is closed.
 */
struct ibv_context *ibv_import_device(int cmd_fd);

/* Closes a device. Returns 0; EINVAL of NULL. */
int ibv_close_device(struct ibv_context *context);

/*
 * The path of sysfs: "/sys", or SYSFS_PATH from the environment without slashes at its end, so ""
 * for "/". Never NULL.
 */
const char *ibv_get_sysfs_path(void);

/*
 * Reads the file dir/file into buf, as text with a 0 at its end and without its last newline.
 * Returns the length. Failure: -1, with errno set unless the text is longer than size - 1. A text that size
 * cuts just after a newline counts as whole, as in rdma-core.
 * An empty file does not change buf. A size of 0 gives 0, if the file can be read.
 */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/*
 * What a device can do
 */

enum ibv_device_cap_flags {
	IBV_DEVICE_RESIZE_MAX_WR = 1 << 0,
	IBV_DEVICE_BAD_PKEY_CNTR = 1 << 1,
	IBV_DEVICE_BAD_QKEY_CNTR = 1 << 2,
	IBV_DEVICE_RAW_MULTI = 1 << 3,
	IBV_DEVICE_AUTO_PATH_MIG = 1 << 4,
	IBV_DEVICE_CHANGE_PHY_PORT = 1 << 5,
	IBV_DEVICE_UD_AV_PORT_ENFORCE = 1 << 6,
	IBV_DEVICE_CURR_QP_STATE_MOD = 1 << 7,
	IBV_DEVICE_SHUTDOWN_PORT = 1 << 8,
	IBV_DEVICE_INIT_TYPE = 1 << 9,
	IBV_DEVICE_PORT_ACTIVE_EVENT = 1 << 10,
	IBV_DEVICE_SYS_IMAGE_GUID = 1 << 11,
	IBV_DEVICE_RC_RNR_NAK_GEN = 1 << 12,
	IBV_DEVICE_SRQ_RESIZE = 1 << 13,
	IBV_DEVICE_N_NOTIFY_CQ = 1 << 14,
	IBV_DEVICE_MEM_WINDOW = 1 << 17,
	IBV_DEVICE_UD_IP_CSUM = 1 << 18,
	IBV_DEVICE_XRC = 1 << 20,
	IBV_DEVICE_MEM_MGT_EXTENSIONS = 1 << 21,
	IBV_DEVICE_MEM_WINDOW_TYPE_2A = 1 << 23,
	IBV_DEVICE_MEM_WINDOW_TYPE_2B = 1 << 24,
	IBV_DEVICE_RC_IP_CSUM = 1 << 25,
	IBV_DEVICE_RAW_IP_CSUM = 1 << 26,
	IBV_DEVICE_MANAGED_FLOW_STEERING = 1 << 29
};

/* Of device_cap_flags_ex only, whose lower half is device_cap_flags. */
#define IBV_DEVICE_RAW_SCATTER_FCS (1ULL << 34)
#define IBV_DEVICE_PCI_WRITE_END_PADDING (1ULL << 36)
#define IBV_DEVICE_CC_DMA_BOUNCE (1ULL << 41)

enum ibv_atomic_cap {
	IBV_ATOMIC_NONE,
	IBV_ATOMIC_HCA,		/* atomic among the queue pairs of this device */
	IBV_ATOMIC_GLOB		/* atomic also against the CPUs */
};

struct ibv_device_attr {
	char fw_ver[64];
	__be64 node_guid;
	__be64 sys_image_guid;
	uint64_t max_mr_size;
	uint64_t page_size_cap;
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	int max_qp;
	int max_qp_wr;
	unsigned int device_cap_flags;
	int max_sge;
	int max_sge_rd;
	int max_cq;
	int max_cqe;
	int max_mr;
	int max_pd;
	int max_qp_rd_atom;
	int max_ee_rd_atom;
	int max_res_rd_atom;
	int max_qp_init_rd_atom;
	int max_ee_init_rd_atom;
	enum ibv_atomic_cap atomic_cap;
	int max_ee;
	int max_rdd;
	int max_mw;
	int max_raw_ipv6_qp;
	int max_raw_ethy_qp;
	int max_mcast_grp;
	int max_mcast_qp_attach;
	int max_total_mcast_qp_attach;
	int max_ah;
	int max_fmr;
	int max_map_per_fmr;
	int max_srq;
	int max_srq_wr;
	int max_srq_sge;
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay;
	uint8_t phys_port_cnt;		/* see also phys_port_cnt_ex */
};

struct ibv_query_device_ex_input {
	uint32_t comp_mask;		/* 0 */
};

enum ibv_odp_general_caps {
	IBV_ODP_SUPPORT = 1 << 0,
	IBV_ODP_SUPPORT_IMPLICIT = 1 << 1
};

enum ibv_odp_transport_cap_bits {
	IBV_ODP_SUPPORT_SEND = 1 << 0,
	IBV_ODP_SUPPORT_RECV = 1 << 1,
	IBV_ODP_SUPPORT_WRITE = 1 << 2,
	IBV_ODP_SUPPORT_READ = 1 << 3,
	IBV_ODP_SUPPORT_ATOMIC = 1 << 4,
	IBV_ODP_SUPPORT_SRQ_RECV = 1 << 5,
	IBV_ODP_SUPPORT_FLUSH = 1 << 6,
	IBV_ODP_SUPPORT_ATOMIC_WRITE = 1 << 7
};

struct ibv_odp_caps {
	uint64_t general_caps;		/* of ibv_odp_general_caps */
	struct {
		uint32_t rc_odp_caps;	/* of ibv_odp_transport_cap_bits */
		uint32_t uc_odp_caps;
		uint32_t ud_odp_caps;
	} per_transport_caps;
};

struct ibv_tso_caps {
	uint32_t max_tso;
	uint32_t supported_qpts;
};

enum ibv_rx_hash_function_flags {
	IBV_RX_HASH_FUNC_TOEPLITZ = 1 << 0
};

enum ibv_rx_hash_fields {
	IBV_RX_HASH_SRC_IPV4 = 1 << 0,
	IBV_RX_HASH_DST_IPV4 = 1 << 1,
	IBV_RX_HASH_SRC_IPV6 = 1 << 2,
	IBV_RX_HASH_DST_IPV6 = 1 << 3,
	IBV_RX_HASH_SRC_PORT_TCP = 1 << 4,
	IBV_RX_HASH_DST_PORT_TCP = 1 << 5,
	IBV_RX_HASH_SRC_PORT_UDP = 1 << 6,
	IBV_RX_HASH_DST_PORT_UDP = 1 << 7,
	IBV_RX_HASH_IPSEC_SPI = 1 << 8
};

/* One more flag, too large for ISO C's enums. */
#define IBV_RX_HASH_INNER (1UL << 31)

struct ibv_rss_caps {
	uint32_t supported_qpts;
	uint32_t max_rwq_indirection_tables;
	uint32_t max_rwq_indirection_table_size;
	uint64_t rx_hash_fields_mask;	/* of ibv_rx_hash_fields */
	uint8_t rx_hash_function;	/* of ibv_rx_hash_function_flags */
};

struct ibv_packet_pacing_caps {
	uint32_t qp_rate_limit_min;	/* kbit/s */
	uint32_t qp_rate_limit_max;	/* kbit/s */
	uint32_t supported_qpts;
};

enum ibv_raw_packet_caps {
	IBV_RAW_PACKET_CAP_CVLAN_STRIPPING = 1 << 0,
	IBV_RAW_PACKET_CAP_SCATTER_FCS = 1 << 1,
	IBV_RAW_PACKET_CAP_IP_CSUM = 1 << 2,
	IBV_RAW_PACKET_CAP_DELAY_DROP = 1 << 3
};

enum ibv_tm_cap_flags {
	IBV_TM_CAP_RC = 1 << 0
};

struct ibv_tm_caps {
	uint32_t max_rndv_hdr_size;
	uint32_t max_num_tags;
	uint32_t flags;			/* of ibv_tm_cap_flags */
	uint32_t max_ops;
	uint32_t max_sge;
};

struct ibv_cq_moderation_caps {
	uint16_t max_cq_count;
	uint16_t max_cq_period;		/* microseconds */
};

enum ibv_pci_atomic_op_size {
	IBV_PCI_ATOMIC_OPERATION_4_BYTE_SIZE_SUP = 1 << 0,
	IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP = 1 << 1,
	IBV_PCI_ATOMIC_OPERATION_16_BYTE_SIZE_SUP = 1 << 2
};

/* Each of ibv_pci_atomic_op_size. */
struct ibv_pci_atomic_caps {
	uint16_t fetch_add;
	uint16_t swap;
	uint16_t compare_swap;
};

struct ibv_device_attr_ex {
	struct ibv_device_attr orig_attr;
	uint32_t comp_mask;
	struct ibv_odp_caps odp_caps;
	uint64_t completion_timestamp_mask;
	uint64_t hca_core_clock;	/* kHz */
	uint64_t device_cap_flags_ex;
	struct ibv_tso_caps tso_caps;
	struct ibv_rss_caps rss_caps;
	uint32_t max_wq_type_rq;
	struct ibv_packet_pacing_caps packet_pacing_caps;
	uint32_t raw_packet_caps;	/* of ibv_raw_packet_caps */
	struct ibv_tm_caps tm_caps;
	struct ibv_cq_moderation_caps cq_mod_caps;
	uint64_t max_dm_size;
	struct ibv_pci_atomic_caps pci_atomic_caps;
	uint32_t xrc_odp_caps;		/* of ibv_odp_transport_cap_bits */
	uint32_t phys_port_cnt_ex;	/* the number of ports, also beyond 255 */
};

/* Failure: the errno value. */
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr);

/*
 * The same and more. Values that the device or the kernel does not give are 0. input: NULL, or with a
 * comp_mask of 0.
 * Failure: the errno value. EINVAL: a comp_mask, or less room than struct ibv_device_attr needs.
 */
int uverbs_query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_size);

static inline int ibv_query_device_ex(struct ibv_context *context,
				      const struct ibv_query_device_ex_input *input,
				      struct ibv_device_attr_ex *attr)
{
	return uverbs_query_device_ex(context, input, attr, sizeof(*attr));
}

enum ibv_qp_attach_comp_cntr_op {
	IBV_QP_ATTACH_COMP_CNTR_OP_SEND = 1 << 0,
	IBV_QP_ATTACH_COMP_CNTR_OP_RECV = 1 << 1,
	IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ = 1 << 2,
	IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ = 1 << 3,
	IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE = 1 << 4,
	IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE = 1 << 5
};

struct ibv_comp_cntr_caps {
	uint64_t max_value;		/* one more wraps to 0 */
	uint32_t max_counters;
	uint32_t supported_qp_attach_ops;	/* of ibv_qp_attach_comp_cntr_op */
};

int _ibv_query_comp_cntr_caps(struct ibv_context *context, struct ibv_comp_cntr_caps *caps,
			      size_t caps_size);

/* Always zeros and EOPNOTSUPP: this library has no completion counters. */
static inline int ibv_query_comp_cntr_caps(struct ibv_context *context,
					   struct ibv_comp_cntr_caps *caps)
{
	return _ibv_query_comp_cntr_caps(context, caps, sizeof(*caps));
}

/*
 * Ports, which count from 1
 */

enum ibv_mtu {
	IBV_MTU_256 = 1,
	IBV_MTU_512 = 2,
	IBV_MTU_1024 = 3,
	IBV_MTU_2048 = 4,
	IBV_MTU_4096 = 5
};

enum ibv_port_state {
	IBV_PORT_NOP = 0,
	IBV_PORT_DOWN = 1,
	IBV_PORT_INIT = 2,
	IBV_PORT_ARMED = 3,
	IBV_PORT_ACTIVE = 4,
	IBV_PORT_ACTIVE_DEFER = 5
};

enum {
	IBV_LINK_LAYER_UNSPECIFIED,
	IBV_LINK_LAYER_INFINIBAND,
	IBV_LINK_LAYER_ETHERNET
};

enum ibv_port_cap_flags {
	IBV_PORT_SM = 1 << 1,
	IBV_PORT_NOTICE_SUP = 1 << 2,
	IBV_PORT_TRAP_SUP = 1 << 3,
	IBV_PORT_OPT_IPD_SUP = 1 << 4,
	IBV_PORT_AUTO_MIGR_SUP = 1 << 5,
	IBV_PORT_SL_MAP_SUP = 1 << 6,
	IBV_PORT_MKEY_NVRAM = 1 << 7,
	IBV_PORT_PKEY_NVRAM = 1 << 8,
	IBV_PORT_LED_INFO_SUP = 1 << 9,
	IBV_PORT_SYS_IMAGE_GUID_SUP = 1 << 11,
	IBV_PORT_PKEY_SW_EXT_PORT_TRAP_SUP = 1 << 12,
	IBV_PORT_EXTENDED_SPEEDS_SUP = 1 << 14,
	IBV_PORT_CAP_MASK2_SUP = 1 << 15,
	IBV_PORT_CM_SUP = 1 << 16,
	IBV_PORT_SNMP_TUNNEL_SUP = 1 << 17,
	IBV_PORT_REINIT_SUP = 1 << 18,
	IBV_PORT_DEVICE_MGMT_SUP = 1 << 19,
	IBV_PORT_VENDOR_CLASS_SUP = 1 << 20,
	IBV_PORT_DR_NOTICE_SUP = 1 << 21,
	IBV_PORT_CAP_MASK_NOTICE_SUP = 1 << 22,
	IBV_PORT_BOOT_MGMT_SUP = 1 << 23,
	IBV_PORT_LINK_LATENCY_SUP = 1 << 24,
	IBV_PORT_CLIENT_REG_SUP = 1 << 25,
	IBV_PORT_IP_BASED_GIDS = 1 << 26
};

enum ibv_port_cap_flags2 {
	IBV_PORT_SET_NODE_DESC_SUP = 1 << 0,
	IBV_PORT_INFO_EXT_SUP = 1 << 1,
	IBV_PORT_VIRT_SUP = 1 << 2,
	IBV_PORT_SWITCH_PORT_STATE_TABLE_SUP = 1 << 3,
	IBV_PORT_LINK_WIDTH_2X_SUP = 1 << 4,
	IBV_PORT_LINK_SPEED_HDR_SUP = 1 << 5,
	IBV_PORT_LINK_SPEED_NDR_SUP = 1 << 10,
	IBV_PORT_LINK_SPEED_XDR_SUP = 1 << 12
};

/* A bit of ibv_port_attr.flags: packets need a GID even within the subnet. */
#define IBV_QPF_GRH_REQUIRED (1 << 0)

struct ibv_port_attr {
	enum ibv_port_state state;
	enum ibv_mtu max_mtu;
	enum ibv_mtu active_mtu;
	int gid_tbl_len;		/* indices, including empty ones */
	uint32_t port_cap_flags;	/* of ibv_port_cap_flags */
	uint32_t max_msg_sz;
	uint32_t bad_pkey_cntr;
	uint32_t qkey_viol_cntr;
	uint16_t pkey_tbl_len;
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t lmc;
	uint8_t max_vl_num;		/* a code: 1, 2, 3, 4, 5 are 1, 2, 4, 8, 15 lanes */
	uint8_t sm_sl;
	uint8_t subnet_timeout;
	uint8_t init_type_reply;
	uint8_t active_width;		/* a code: 1, 2, 4, 8, 16 are 1x, 4x, 8x, 12x, 2x */
	uint8_t active_speed;		/* a code, such as 32: 25 Gbit/s a lane; see active_speed_ex */
	uint8_t phys_state;
	uint8_t link_layer;		/* IBV_LINK_LAYER_… */
	uint8_t flags;			/* IBV_QPF_GRH_REQUIRED */
	uint16_t port_cap_flags2;	/* of ibv_port_cap_flags2 */
	uint32_t active_speed_ex;	/* not 0: the same code, if 8 bits are too few */
};

/*
 * A port's attributes. Failure: the errno value, EINVAL if there is no such port; *port_attr is zero then.
 */
int uverbs_query_port(struct ibv_context *context, uint8_t port_num,
		      struct ibv_port_attr *port_attr, size_t port_attr_size);

static inline int ibv_query_port(struct ibv_context *context, uint8_t port_num,
				 struct ibv_port_attr *port_attr)
{
	return uverbs_query_port(context, port_num, port_attr, sizeof(*port_attr));
}

/*
 * The port's effective rate, in units of 100 Mbit/s. Failure: the errno value, EOPNOTSUPP if the kernel
 * does not give it, EPROTONOSUPPORT if it is an mlx5 device and the kernel is older than that request.
 */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);

/*
 * GID tables: for each port an array of gid_tbl_len entries, most of them empty
 */

union ibv_gid {
	uint8_t raw[16];
	struct {
		__be64 subnet_prefix;
		__be64 interface_id;
	} global;
};

enum ibv_gid_type {
	IBV_GID_TYPE_IB,
	IBV_GID_TYPE_ROCE_V1,
	IBV_GID_TYPE_ROCE_V2
};

/* A type as in sysfs, which has one word for two types. */
enum ibv_gid_type_sysfs {
	IBV_GID_TYPE_SYSFS_IB_ROCE_V1,
	IBV_GID_TYPE_SYSFS_ROCE_V2
};

struct ibv_gid_entry {
	union ibv_gid gid;
	uint32_t gid_index;
	uint32_t port_num;
	uint32_t gid_type;		/* of ibv_gid_type */
	uint32_t ndev_ifindex;		/* the network interface; 0: none */
};

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);

/*
 * One entry. flags: 0. Failure: the errno value. ENODATA: the entry is empty; EINVAL: no such port
 * or index.
 */
static inline int ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
				   uint32_t gid_index, struct ibv_gid_entry *entry, uint32_t flags)
{
	return _ibv_query_gid_ex(context, port_num, gid_index, entry, flags, sizeof(*entry));
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size);

/*
 * Writes all entries of all ports that are not empty into an array with room for max_entries. flags: 0.
 * Returns their number. Failure: the negative errno value, -EINVAL if there are more, and if max_entries is
 * 0. (The sum of all gid_tbl_len is always enough room, if it is not 0.)
 */
static inline ssize_t ibv_query_gid_table(struct ibv_context *context,
					  struct ibv_gid_entry *entries, size_t max_entries,
					  uint32_t flags)
{
	return _ibv_query_gid_table(context, entries, max_entries, flags, sizeof(*entries));
}

/* Only the GID; all zeros if the entry is empty. Failure: -1. */
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid);

/*
 * Only its type; IBV_GID_TYPE_SYSFS_IB_ROCE_V1 if the entry is empty. Failure: -1.
 * (rdma-core has this function for its own tools, but in no public header.)
 */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       enum ibv_gid_type_sysfs *type);

/*
 * P_Key tables
 */

/* The P_Key at an index. Failure: -1. */
int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey);

/* The index of a P_Key. Failure: -1, if the table has no such P_Key. */
int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey);

/*
 * Events
 */

enum ibv_event_type {
	IBV_EVENT_CQ_ERR,
	IBV_EVENT_QP_FATAL,
	IBV_EVENT_QP_REQ_ERR,
	IBV_EVENT_QP_ACCESS_ERR,
	IBV_EVENT_COMM_EST,
	IBV_EVENT_SQ_DRAINED,
	IBV_EVENT_PATH_MIG,
	IBV_EVENT_PATH_MIG_ERR,
	IBV_EVENT_DEVICE_FATAL,
	IBV_EVENT_PORT_ACTIVE,
	IBV_EVENT_PORT_ERR,
	IBV_EVENT_LID_CHANGE,
	IBV_EVENT_PKEY_CHANGE,
	IBV_EVENT_SM_CHANGE,
	IBV_EVENT_SRQ_ERR,
	IBV_EVENT_SRQ_LIMIT_REACHED,
	IBV_EVENT_QP_LAST_WQE_REACHED,
	IBV_EVENT_CLIENT_REREGISTER,
	IBV_EVENT_GID_CHANGE,
	IBV_EVENT_WQ_FATAL,
	IBV_EVENT_DEVICE_SPEED_CHANGE
};

struct ibv_async_event {
	union {
		/* This library makes none of these objects, so they have no events. */
		struct ibv_cq *cq;
		struct ibv_qp *qp;
		struct ibv_srq *srq;
		struct ibv_wq *wq;
		int port_num;		/* of an event of a port */
	} element;
	enum ibv_event_type event_type;
};

/*
 * Waits for the next event of a device and its ports. Failure: -1 and errno; EAGAIN: async_fd is
 * O_NONBLOCK and there is no event.
 */
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event);

/* Call this for every event received. */
void ibv_ack_async_event(struct ibv_async_event *event);

/*
 * Names of numbers: texts that are never freed, "unknown" for a number without a name.
 */

enum ibv_wc_status {
	IBV_WC_SUCCESS,
	IBV_WC_LOC_LEN_ERR,
	IBV_WC_LOC_QP_OP_ERR,
	IBV_WC_LOC_EEC_OP_ERR,
	IBV_WC_LOC_PROT_ERR,
	IBV_WC_WR_FLUSH_ERR,
	IBV_WC_MW_BIND_ERR,
	IBV_WC_BAD_RESP_ERR,
	IBV_WC_LOC_ACCESS_ERR,
	IBV_WC_REM_INV_REQ_ERR,
	IBV_WC_REM_ACCESS_ERR,
	IBV_WC_REM_OP_ERR,
	IBV_WC_RETRY_EXC_ERR,
	IBV_WC_RNR_RETRY_EXC_ERR,
	IBV_WC_LOC_RDD_VIOL_ERR,
	IBV_WC_REM_INV_RD_REQ_ERR,
	IBV_WC_REM_ABORT_ERR,
	IBV_WC_INV_EECN_ERR,
	IBV_WC_INV_EEC_STATE_ERR,
	IBV_WC_FATAL_ERR,
	IBV_WC_RESP_TIMEOUT_ERR,
	IBV_WC_GENERAL_ERR,
	IBV_WC_TM_ERR,
	IBV_WC_TM_RNDV_INCOMPLETE
};

enum ibv_wr_opcode {
	IBV_WR_RDMA_WRITE,
	IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_SEND,
	IBV_WR_SEND_WITH_IMM,
	IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_CMP_AND_SWP,
	IBV_WR_ATOMIC_FETCH_AND_ADD,
	IBV_WR_LOCAL_INV,
	IBV_WR_BIND_MW,
	IBV_WR_SEND_WITH_INV,
	IBV_WR_TSO,
	IBV_WR_DRIVER1,
	IBV_WR_FLUSH = 14,
	IBV_WR_ATOMIC_WRITE = 15
};

const char *ibv_node_type_str(enum ibv_node_type node_type);
const char *ibv_port_state_str(enum ibv_port_state port_state);
const char *ibv_event_type_str(enum ibv_event_type event);
const char *ibv_wc_status_str(enum ibv_wc_status status);
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

/*
 * mlx5 devices: <infiniband/mlx5dv.h>
 */

enum mlx5dv_context_attr_flags {
	MLX5DV_CONTEXT_FLAGS_DEVX = 1 << 0	/* for mlx5dv_devx_general_cmd() */
};

/* File descriptors of capabilities. This library does not support them: each comp_mask is EINVAL. */
enum mlx5dv_context_attr_comp_mask {
	MLX5DV_CONTEXT_ATTR_MASK_FD_ARRAY = 1 << 0
};

struct ibv_fd_arr {
	int *arr;
	uint32_t count;
};

struct mlx5dv_context_attr {
	uint32_t flags;			/* of mlx5dv_context_attr_flags */
	uint64_t comp_mask;		/* of mlx5dv_context_attr_comp_mask; has to be 0 here */
	struct ibv_fd_arr *fds;		/* not read here */
};

/* Bits of mlx5dv_port.flags: which of its fields are set. */
#define MLX5DV_QUERY_PORT_VPORT (1 << 0)
#define MLX5DV_QUERY_PORT_VPORT_VHCA_ID (1 << 1)
#define MLX5DV_QUERY_PORT_VPORT_STEERING_ICM_RX (1 << 2)
#define MLX5DV_QUERY_PORT_VPORT_STEERING_ICM_TX (1 << 3)
#define MLX5DV_QUERY_PORT_VPORT_REG_C0 (1 << 4)
#define MLX5DV_QUERY_PORT_ESW_OWNER_VHCA_ID (1 << 5)

struct mlx5dv_reg {
	uint32_t value;
	uint32_t mask;
};

/* The e-switch's data about a port: flags has what is known, and is mostly 0 unless in switchdev mode. */
struct mlx5dv_port {
	unsigned long long flags;		/* MLX5DV_QUERY_PORT_… */
	uint16_t vport;
	uint16_t vport_vhca_id;
	uint16_t esw_owner_vhca_id;
	uint16_t rsvd0;
	unsigned long long vport_steering_icm_rx;
	unsigned long long vport_steering_icm_tx;
	struct mlx5dv_reg reg_c0;		/* marks packets of this vport */
};

/* Whether the mlx5 functions work for a device. False also if it is not known which driver it has. */
bool mlx5dv_is_supported(struct ibv_device *device);

/*
 * Opens a device like ibv_open_device(), with attributes.
 * Failure: NULL and errno. EOPNOTSUPP: not an mlx5 device; EINVAL: an unknown flag, a comp_mask, or the
 * firmware has no DEVX; and as ibv_open_device().
 */
struct ibv_context *mlx5dv_open_device(struct ibv_device *device,
				       struct mlx5dv_context_attr *attr);

int _mlx5dv_query_port(struct ibv_context *context, uint32_t port_num, struct mlx5dv_port *info,
		       size_t info_len);

/*
 * A port's vport, its number, register and addresses for steering. Failure: the errno value.
 * EOPNOTSUPP: not an mlx5 device, or in switchdev mode a port that has no vport (elsewhere no port has one, and flags
 * is 0); EPROTONOSUPPORT: before Linux 5.13; EINVAL: no such port.
 */
static inline int mlx5dv_query_port(struct ibv_context *context, uint32_t port_num,
				    struct mlx5dv_port *info)
{
	return _mlx5dv_query_port(context, port_num, info, sizeof(*info));
}

/*
 * Sends a command of inlen bytes to the firmware and writes its answer to out. Open the device with
 * MLX5DV_CONTEXT_FLAGS_DEVX.
 * Failure: the errno value. EREMOTEIO: the firmware refused, and out holds its status and syndrome
 * (Linux 5.10 turns the status into an errno instead); EINVAL: the kernel does not let the command
 * through; EOPNOTSUPP: not an mlx5 device.
 */
int mlx5dv_devx_general_cmd(struct ibv_context *context, const void *in, size_t inlen, void *out,
			    size_t outlen);

/*
 * Names and ports from sysfs: <infiniband/umad.h>. A "CA" (channel adapter) is a device.
 */

#define UMAD_MAX_DEVICES 128
#define UMAD_CA_NAME_LEN 20		/* with the 0 at the end */
#define UMAD_CA_MAX_PORTS 10		/* ports 0 to 9 */

typedef struct umad_port {
	char ca_name[UMAD_CA_NAME_LEN];
	int portnum;
	unsigned int base_lid;
	unsigned int lmc;
	unsigned int sm_lid;
	unsigned int sm_sl;
	unsigned int state;		/* as enum ibv_port_state */
	unsigned int phys_state;
	unsigned int rate;		/* Gbit/s, rounded down */
	__be32 capmask;			/* of ibv_port_cap_flags */
	__be64 gid_prefix;
	__be64 port_guid;
	unsigned int pkeys_size;
	uint16_t *pkeys;		/* in this machine's byte order */
	char link_layer[UMAD_CA_NAME_LEN];	/* "InfiniBand", "Ethernet" */
} umad_port_t;

typedef struct umad_ca {
	char ca_name[UMAD_CA_NAME_LEN];
	unsigned int node_type;		/* as enum ibv_node_type */
	int numports;			/* the highest number among the ports */
	char fw_ver[20];
	char ca_type[40];
	char hw_ver[20];
	__be64 node_guid;
	__be64 system_guid;
	umad_port_t *ports[UMAD_CA_MAX_PORTS];	/* NULL if there is no such port */
} umad_ca_t;

struct umad_device_node {
	struct umad_device_node *next;
	const char *ca_name;
};

/* These do nothing and return 0. */
int umad_init(void);
int umad_done(void);

/*
 * The names of up to max CAs, switches and routers, in alphabetical order. Names that are too long or no UTF-8 are left
 * out. Returns how many. (Without RDMA in the kernel, and if it cannot be read, there is one name, "mthca0",
 * as in rdma-core.) A negative number if cas is NULL and there is a name to write.
 */
int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max);

/*
 * A device and all its ports. Release it with umad_release_ca(). ca_name NULL: the first device that is a
 * switch or has an active port of InfiniBand, otherwise the first that has a port that is not disabled, in the
 * order of the folder in sysfs.
 * Failure: a negative number; there is nothing to release. umad_release_ca() returns 0, and a negative
 * number without ca.
 */
int umad_get_ca(const char *ca_name, umad_ca_t *ca);
int umad_release_ca(umad_ca_t *ca);

/*
 * One port. Release it with umad_release_port(). ca_name NULL: as above; with a portnum only devices count whose port
 * of that number is of InfiniBand and active, or otherwise not disabled, and each switch, which has port 0 only
 * and gives that. portnum 0: the first active
 * port of InfiniBand, otherwise one that is up, otherwise one that is not disabled. Failure: a negative number; there is nothing to release.
 * umad_release_port() returns 0, and a negative number without port.
 */
int umad_get_port(const char *ca_name, int portnum, umad_port_t *port);
int umad_release_port(umad_port_t *port);

/*
 * The GUIDs of a device's ports: portguids[n] is the GUID of port n, or 0 if there is no port n (only
 * switches have port 0). ca_name NULL: as above.
 * Returns how many were filled: the highest port number plus one; 0 if portguids is NULL.
 * Failure: a negative number. -ENOMEM: there are more than max, and none was filled; -ENODEV: no such
 * device; -1: the same, or a port that cannot be read as libibumad reads it.
 */
int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max);

/*
 * The names of all CAs, switches and routers, of any length, in no particular order; NULL with errno 0 if there are none.
 * Failure: NULL and errno; EPROTO if a name is no UTF-8.
 */
struct umad_device_node *umad_get_ca_device_list(void);
void umad_free_ca_device_list(struct umad_device_node *head);

/*
 * Sorts such a list by name. size: the number of its nodes, or 0 to count them; with 1 nothing is read,
 * and the answer is 0. Failure: the errno value. EINVAL: there are not size nodes, or head is NULL; ENOMEM.
 */
int umad_sort_ca_device_list(struct umad_device_node **head, size_t size);

/*
 * Sets the level of messages on stderr: 0 none (the default); 1 or more: umad_get_ca(), umad_get_port(),
 * umad_get_ca_portguids() and umad_get_ca_device_list() write a line if they fail, unless a structure to
 * fill is NULL or there is no memory for the answer. A negative number does not change the level. Returns
 * the level.
 */
int umad_debug(int level);

#ifdef __cplusplus
}
#endif

#endif
