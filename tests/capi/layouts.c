/*
 * Every structure, field and constant of uverbs.h, a line for each: sizes, offsets, values.
 *
 * Compiled twice: with -DUVERBS_H for our header, without it for rdma-core's; -DRDMA_CORE=44 is the
 * release to compare with. Both print the same. Both leave out what that release does not have yet;
 * stderr says how many lines.
 *
 * (Releases between those that were looked at, 33, 44, 56 and 65, may have some of it earlier.)
 */
#include <stddef.h>
#include <stdio.h>

#ifdef UVERBS_H
#include <uverbs.h>
#else
#include <infiniband/mlx5dv.h>
#include <infiniband/umad.h>
#include <infiniband/verbs.h>
#endif

static int left_out;

#define TYPE(type) printf("%s: size %zu\n", #type, sizeof(type))
#define FIELD(type, field)                                                                         \
	printf("%s.%s: offset %zu size %zu\n", #type, #field, offsetof(type, field),               \
	       sizeof(((type *)0)->field))
#define VALUE(constant) printf("%s: %lld\n", #constant, (long long)(constant))

#if RDMA_CORE >= 44
#define SINCE_44(line) line
#else
#define SINCE_44(line) left_out++
#endif

#if RDMA_CORE >= 56
#define SINCE_56(line) line
#else
#define SINCE_56(line) left_out++
#endif

#if RDMA_CORE >= 65
#define SINCE_65(line) line
#else
#define SINCE_65(line) left_out++
#endif

/*
 * A structure that has grown. Where rdma-core's is still the old one it ends where ours goes on (or
 * its padding does), so that what the library fills for an old program fits.
 */
#ifdef UVERBS_H
#define UP_TO(field, align) ((field + align - 1) / align * align)
#define OLD_SIZE(type, field)                                                                      \
	printf("%s: size %zu\n", #type, UP_TO(offsetof(type, field), _Alignof(type)))
#else
#define OLD_SIZE(type, field) TYPE(type)
#endif
#if RDMA_CORE >= 44
#define SIZE_SINCE_44(type, field) TYPE(type)
#else
#define SIZE_SINCE_44(type, field) OLD_SIZE(type, field)
#endif
#if RDMA_CORE >= 56
#define SIZE_SINCE_56(type, field) TYPE(type)
#else
#define SIZE_SINCE_56(type, field) OLD_SIZE(type, field)
#endif
#if RDMA_CORE >= 65
#define SIZE_SINCE_65(type, field) TYPE(type)
#else
#define SIZE_SINCE_65(type, field) OLD_SIZE(type, field)
#endif

static void devices(void)
{
	TYPE(enum ibv_node_type);
	VALUE(IBV_NODE_UNKNOWN);
	VALUE(IBV_NODE_CA);
	VALUE(IBV_NODE_SWITCH);
	VALUE(IBV_NODE_ROUTER);
	VALUE(IBV_NODE_RNIC);
	VALUE(IBV_NODE_USNIC);
	VALUE(IBV_NODE_USNIC_UDP);
	VALUE(IBV_NODE_UNSPECIFIED);

	TYPE(enum ibv_transport_type);
	VALUE(IBV_TRANSPORT_UNKNOWN);
	VALUE(IBV_TRANSPORT_IB);
	VALUE(IBV_TRANSPORT_IWARP);
	VALUE(IBV_TRANSPORT_USNIC);
	VALUE(IBV_TRANSPORT_USNIC_UDP);
	VALUE(IBV_TRANSPORT_UNSPECIFIED);
	VALUE(IBV_SYSFS_NAME_MAX);
	VALUE(IBV_SYSFS_PATH_MAX);

	TYPE(struct ibv_device);
	FIELD(struct ibv_device, _ops);
	FIELD(struct ibv_device, node_type);
	FIELD(struct ibv_device, transport_type);
	FIELD(struct ibv_device, name);
	FIELD(struct ibv_device, dev_name);
	FIELD(struct ibv_device, dev_path);
	FIELD(struct ibv_device, ibdev_path);

	TYPE(struct ibv_context_ops);

	TYPE(struct ibv_context);
	FIELD(struct ibv_context, device);
	FIELD(struct ibv_context, ops);
	FIELD(struct ibv_context, cmd_fd);
	FIELD(struct ibv_context, async_fd);
	FIELD(struct ibv_context, num_comp_vectors);
	FIELD(struct ibv_context, mutex);
	FIELD(struct ibv_context, abi_compat);
}

static void device_attributes(void)
{
	TYPE(enum ibv_device_cap_flags);
	VALUE(IBV_DEVICE_RESIZE_MAX_WR);
	VALUE(IBV_DEVICE_BAD_PKEY_CNTR);
	VALUE(IBV_DEVICE_BAD_QKEY_CNTR);
	VALUE(IBV_DEVICE_RAW_MULTI);
	VALUE(IBV_DEVICE_AUTO_PATH_MIG);
	VALUE(IBV_DEVICE_CHANGE_PHY_PORT);
	VALUE(IBV_DEVICE_UD_AV_PORT_ENFORCE);
	VALUE(IBV_DEVICE_CURR_QP_STATE_MOD);
	VALUE(IBV_DEVICE_SHUTDOWN_PORT);
	VALUE(IBV_DEVICE_INIT_TYPE);
	VALUE(IBV_DEVICE_PORT_ACTIVE_EVENT);
	VALUE(IBV_DEVICE_SYS_IMAGE_GUID);
	VALUE(IBV_DEVICE_RC_RNR_NAK_GEN);
	VALUE(IBV_DEVICE_SRQ_RESIZE);
	VALUE(IBV_DEVICE_N_NOTIFY_CQ);
	VALUE(IBV_DEVICE_MEM_WINDOW);
	VALUE(IBV_DEVICE_UD_IP_CSUM);
	VALUE(IBV_DEVICE_XRC);
	VALUE(IBV_DEVICE_MEM_MGT_EXTENSIONS);
	VALUE(IBV_DEVICE_MEM_WINDOW_TYPE_2A);
	VALUE(IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	VALUE(IBV_DEVICE_RC_IP_CSUM);
	VALUE(IBV_DEVICE_RAW_IP_CSUM);
	VALUE(IBV_DEVICE_MANAGED_FLOW_STEERING);
	VALUE(IBV_DEVICE_RAW_SCATTER_FCS);
	VALUE(IBV_DEVICE_PCI_WRITE_END_PADDING);
	SINCE_65(VALUE(IBV_DEVICE_CC_DMA_BOUNCE));

	TYPE(enum ibv_atomic_cap);
	VALUE(IBV_ATOMIC_NONE);
	VALUE(IBV_ATOMIC_HCA);
	VALUE(IBV_ATOMIC_GLOB);

	TYPE(struct ibv_device_attr);
	FIELD(struct ibv_device_attr, fw_ver);
	FIELD(struct ibv_device_attr, node_guid);
	FIELD(struct ibv_device_attr, sys_image_guid);
	FIELD(struct ibv_device_attr, max_mr_size);
	FIELD(struct ibv_device_attr, page_size_cap);
	FIELD(struct ibv_device_attr, vendor_id);
	FIELD(struct ibv_device_attr, vendor_part_id);
	FIELD(struct ibv_device_attr, hw_ver);
	FIELD(struct ibv_device_attr, max_qp);
	FIELD(struct ibv_device_attr, max_qp_wr);
	FIELD(struct ibv_device_attr, device_cap_flags);
	FIELD(struct ibv_device_attr, max_sge);
	FIELD(struct ibv_device_attr, max_sge_rd);
	FIELD(struct ibv_device_attr, max_cq);
	FIELD(struct ibv_device_attr, max_cqe);
	FIELD(struct ibv_device_attr, max_mr);
	FIELD(struct ibv_device_attr, max_pd);
	FIELD(struct ibv_device_attr, max_qp_rd_atom);
	FIELD(struct ibv_device_attr, max_ee_rd_atom);
	FIELD(struct ibv_device_attr, max_res_rd_atom);
	FIELD(struct ibv_device_attr, max_qp_init_rd_atom);
	FIELD(struct ibv_device_attr, max_ee_init_rd_atom);
	FIELD(struct ibv_device_attr, atomic_cap);
	FIELD(struct ibv_device_attr, max_ee);
	FIELD(struct ibv_device_attr, max_rdd);
	FIELD(struct ibv_device_attr, max_mw);
	FIELD(struct ibv_device_attr, max_raw_ipv6_qp);
	FIELD(struct ibv_device_attr, max_raw_ethy_qp);
	FIELD(struct ibv_device_attr, max_mcast_grp);
	FIELD(struct ibv_device_attr, max_mcast_qp_attach);
	FIELD(struct ibv_device_attr, max_total_mcast_qp_attach);
	FIELD(struct ibv_device_attr, max_ah);
	FIELD(struct ibv_device_attr, max_fmr);
	FIELD(struct ibv_device_attr, max_map_per_fmr);
	FIELD(struct ibv_device_attr, max_srq);
	FIELD(struct ibv_device_attr, max_srq_wr);
	FIELD(struct ibv_device_attr, max_srq_sge);
	FIELD(struct ibv_device_attr, max_pkeys);
	FIELD(struct ibv_device_attr, local_ca_ack_delay);
	FIELD(struct ibv_device_attr, phys_port_cnt);

	TYPE(struct ibv_query_device_ex_input);
	FIELD(struct ibv_query_device_ex_input, comp_mask);

	TYPE(enum ibv_odp_general_caps);
	VALUE(IBV_ODP_SUPPORT);
	VALUE(IBV_ODP_SUPPORT_IMPLICIT);

	TYPE(enum ibv_odp_transport_cap_bits);
	VALUE(IBV_ODP_SUPPORT_SEND);
	VALUE(IBV_ODP_SUPPORT_RECV);
	VALUE(IBV_ODP_SUPPORT_WRITE);
	VALUE(IBV_ODP_SUPPORT_READ);
	VALUE(IBV_ODP_SUPPORT_ATOMIC);
	VALUE(IBV_ODP_SUPPORT_SRQ_RECV);
	SINCE_65(VALUE(IBV_ODP_SUPPORT_FLUSH));
	SINCE_65(VALUE(IBV_ODP_SUPPORT_ATOMIC_WRITE));

	TYPE(struct ibv_odp_caps);
	FIELD(struct ibv_odp_caps, general_caps);
	FIELD(struct ibv_odp_caps, per_transport_caps);
	FIELD(struct ibv_odp_caps, per_transport_caps.rc_odp_caps);
	FIELD(struct ibv_odp_caps, per_transport_caps.uc_odp_caps);
	FIELD(struct ibv_odp_caps, per_transport_caps.ud_odp_caps);

	TYPE(struct ibv_tso_caps);
	FIELD(struct ibv_tso_caps, max_tso);
	FIELD(struct ibv_tso_caps, supported_qpts);

	TYPE(enum ibv_rx_hash_function_flags);
	VALUE(IBV_RX_HASH_FUNC_TOEPLITZ);

	TYPE(enum ibv_rx_hash_fields);
	VALUE(IBV_RX_HASH_SRC_IPV4);
	VALUE(IBV_RX_HASH_DST_IPV4);
	VALUE(IBV_RX_HASH_SRC_IPV6);
	VALUE(IBV_RX_HASH_DST_IPV6);
	VALUE(IBV_RX_HASH_SRC_PORT_TCP);
	VALUE(IBV_RX_HASH_DST_PORT_TCP);
	VALUE(IBV_RX_HASH_SRC_PORT_UDP);
	VALUE(IBV_RX_HASH_DST_PORT_UDP);
	VALUE(IBV_RX_HASH_IPSEC_SPI);
	VALUE(IBV_RX_HASH_INNER);

	TYPE(struct ibv_rss_caps);
	FIELD(struct ibv_rss_caps, supported_qpts);
	FIELD(struct ibv_rss_caps, max_rwq_indirection_tables);
	FIELD(struct ibv_rss_caps, max_rwq_indirection_table_size);
	FIELD(struct ibv_rss_caps, rx_hash_fields_mask);
	FIELD(struct ibv_rss_caps, rx_hash_function);

	TYPE(struct ibv_packet_pacing_caps);
	FIELD(struct ibv_packet_pacing_caps, qp_rate_limit_min);
	FIELD(struct ibv_packet_pacing_caps, qp_rate_limit_max);
	FIELD(struct ibv_packet_pacing_caps, supported_qpts);

	TYPE(enum ibv_raw_packet_caps);
	VALUE(IBV_RAW_PACKET_CAP_CVLAN_STRIPPING);
	VALUE(IBV_RAW_PACKET_CAP_SCATTER_FCS);
	VALUE(IBV_RAW_PACKET_CAP_IP_CSUM);
	VALUE(IBV_RAW_PACKET_CAP_DELAY_DROP);

	TYPE(enum ibv_tm_cap_flags);
	VALUE(IBV_TM_CAP_RC);

	TYPE(struct ibv_tm_caps);
	FIELD(struct ibv_tm_caps, max_rndv_hdr_size);
	FIELD(struct ibv_tm_caps, max_num_tags);
	FIELD(struct ibv_tm_caps, flags);
	FIELD(struct ibv_tm_caps, max_ops);
	FIELD(struct ibv_tm_caps, max_sge);

	TYPE(struct ibv_cq_moderation_caps);
	FIELD(struct ibv_cq_moderation_caps, max_cq_count);
	FIELD(struct ibv_cq_moderation_caps, max_cq_period);

	TYPE(enum ibv_pci_atomic_op_size);
	VALUE(IBV_PCI_ATOMIC_OPERATION_4_BYTE_SIZE_SUP);
	VALUE(IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP);
	VALUE(IBV_PCI_ATOMIC_OPERATION_16_BYTE_SIZE_SUP);

	TYPE(struct ibv_pci_atomic_caps);
	FIELD(struct ibv_pci_atomic_caps, fetch_add);
	FIELD(struct ibv_pci_atomic_caps, swap);
	FIELD(struct ibv_pci_atomic_caps, compare_swap);

	SIZE_SINCE_44(struct ibv_device_attr_ex, phys_port_cnt_ex);
	FIELD(struct ibv_device_attr_ex, orig_attr);
	FIELD(struct ibv_device_attr_ex, comp_mask);
	FIELD(struct ibv_device_attr_ex, odp_caps);
	FIELD(struct ibv_device_attr_ex, completion_timestamp_mask);
	FIELD(struct ibv_device_attr_ex, hca_core_clock);
	FIELD(struct ibv_device_attr_ex, device_cap_flags_ex);
	FIELD(struct ibv_device_attr_ex, tso_caps);
	FIELD(struct ibv_device_attr_ex, rss_caps);
	FIELD(struct ibv_device_attr_ex, max_wq_type_rq);
	FIELD(struct ibv_device_attr_ex, packet_pacing_caps);
	FIELD(struct ibv_device_attr_ex, raw_packet_caps);
	FIELD(struct ibv_device_attr_ex, tm_caps);
	FIELD(struct ibv_device_attr_ex, cq_mod_caps);
	FIELD(struct ibv_device_attr_ex, max_dm_size);
	FIELD(struct ibv_device_attr_ex, pci_atomic_caps);
	FIELD(struct ibv_device_attr_ex, xrc_odp_caps);
	SINCE_44(FIELD(struct ibv_device_attr_ex, phys_port_cnt_ex));

	SINCE_65(TYPE(enum ibv_qp_attach_comp_cntr_op));
	SINCE_65(VALUE(IBV_QP_ATTACH_COMP_CNTR_OP_SEND));
	SINCE_65(VALUE(IBV_QP_ATTACH_COMP_CNTR_OP_RECV));
	SINCE_65(VALUE(IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ));
	SINCE_65(VALUE(IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ));
	SINCE_65(VALUE(IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE));
	SINCE_65(VALUE(IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE));

	SINCE_65(TYPE(struct ibv_comp_cntr_caps));
	SINCE_65(FIELD(struct ibv_comp_cntr_caps, max_value));
	SINCE_65(FIELD(struct ibv_comp_cntr_caps, max_counters));
	SINCE_65(FIELD(struct ibv_comp_cntr_caps, supported_qp_attach_ops));
}

static void ports(void)
{
	TYPE(enum ibv_mtu);
	VALUE(IBV_MTU_256);
	VALUE(IBV_MTU_512);
	VALUE(IBV_MTU_1024);
	VALUE(IBV_MTU_2048);
	VALUE(IBV_MTU_4096);

	TYPE(enum ibv_port_state);
	VALUE(IBV_PORT_NOP);
	VALUE(IBV_PORT_DOWN);
	VALUE(IBV_PORT_INIT);
	VALUE(IBV_PORT_ARMED);
	VALUE(IBV_PORT_ACTIVE);
	VALUE(IBV_PORT_ACTIVE_DEFER);
	VALUE(IBV_LINK_LAYER_UNSPECIFIED);
	VALUE(IBV_LINK_LAYER_INFINIBAND);
	VALUE(IBV_LINK_LAYER_ETHERNET);

	TYPE(enum ibv_port_cap_flags);
	VALUE(IBV_PORT_SM);
	VALUE(IBV_PORT_NOTICE_SUP);
	VALUE(IBV_PORT_TRAP_SUP);
	VALUE(IBV_PORT_OPT_IPD_SUP);
	VALUE(IBV_PORT_AUTO_MIGR_SUP);
	VALUE(IBV_PORT_SL_MAP_SUP);
	VALUE(IBV_PORT_MKEY_NVRAM);
	VALUE(IBV_PORT_PKEY_NVRAM);
	VALUE(IBV_PORT_LED_INFO_SUP);
	VALUE(IBV_PORT_SYS_IMAGE_GUID_SUP);
	VALUE(IBV_PORT_PKEY_SW_EXT_PORT_TRAP_SUP);
	VALUE(IBV_PORT_EXTENDED_SPEEDS_SUP);
	VALUE(IBV_PORT_CAP_MASK2_SUP);
	VALUE(IBV_PORT_CM_SUP);
	VALUE(IBV_PORT_SNMP_TUNNEL_SUP);
	VALUE(IBV_PORT_REINIT_SUP);
	VALUE(IBV_PORT_DEVICE_MGMT_SUP);
	VALUE(IBV_PORT_VENDOR_CLASS_SUP);
	VALUE(IBV_PORT_DR_NOTICE_SUP);
	VALUE(IBV_PORT_CAP_MASK_NOTICE_SUP);
	VALUE(IBV_PORT_BOOT_MGMT_SUP);
	VALUE(IBV_PORT_LINK_LATENCY_SUP);
	VALUE(IBV_PORT_CLIENT_REG_SUP);
	VALUE(IBV_PORT_IP_BASED_GIDS);

	TYPE(enum ibv_port_cap_flags2);
	VALUE(IBV_PORT_SET_NODE_DESC_SUP);
	VALUE(IBV_PORT_INFO_EXT_SUP);
	VALUE(IBV_PORT_VIRT_SUP);
	VALUE(IBV_PORT_SWITCH_PORT_STATE_TABLE_SUP);
	VALUE(IBV_PORT_LINK_WIDTH_2X_SUP);
	VALUE(IBV_PORT_LINK_SPEED_HDR_SUP);
	SINCE_44(VALUE(IBV_PORT_LINK_SPEED_NDR_SUP));
	SINCE_56(VALUE(IBV_PORT_LINK_SPEED_XDR_SUP));
	VALUE(IBV_QPF_GRH_REQUIRED);

	SIZE_SINCE_56(struct ibv_port_attr, active_speed_ex);
	FIELD(struct ibv_port_attr, state);
	FIELD(struct ibv_port_attr, max_mtu);
	FIELD(struct ibv_port_attr, active_mtu);
	FIELD(struct ibv_port_attr, gid_tbl_len);
	FIELD(struct ibv_port_attr, port_cap_flags);
	FIELD(struct ibv_port_attr, max_msg_sz);
	FIELD(struct ibv_port_attr, bad_pkey_cntr);
	FIELD(struct ibv_port_attr, qkey_viol_cntr);
	FIELD(struct ibv_port_attr, pkey_tbl_len);
	FIELD(struct ibv_port_attr, lid);
	FIELD(struct ibv_port_attr, sm_lid);
	FIELD(struct ibv_port_attr, lmc);
	FIELD(struct ibv_port_attr, max_vl_num);
	FIELD(struct ibv_port_attr, sm_sl);
	FIELD(struct ibv_port_attr, subnet_timeout);
	FIELD(struct ibv_port_attr, init_type_reply);
	FIELD(struct ibv_port_attr, active_width);
	FIELD(struct ibv_port_attr, active_speed);
	FIELD(struct ibv_port_attr, phys_state);
	FIELD(struct ibv_port_attr, link_layer);
	FIELD(struct ibv_port_attr, flags);
	FIELD(struct ibv_port_attr, port_cap_flags2);
	SINCE_56(FIELD(struct ibv_port_attr, active_speed_ex));
}

static void gids(void)
{
	TYPE(union ibv_gid);
	FIELD(union ibv_gid, raw);
	FIELD(union ibv_gid, global);
	FIELD(union ibv_gid, global.subnet_prefix);
	FIELD(union ibv_gid, global.interface_id);

	TYPE(enum ibv_gid_type);
	VALUE(IBV_GID_TYPE_IB);
	VALUE(IBV_GID_TYPE_ROCE_V1);
	VALUE(IBV_GID_TYPE_ROCE_V2);

	TYPE(struct ibv_gid_entry);
	FIELD(struct ibv_gid_entry, gid);
	FIELD(struct ibv_gid_entry, gid_index);
	FIELD(struct ibv_gid_entry, port_num);
	FIELD(struct ibv_gid_entry, gid_type);
	FIELD(struct ibv_gid_entry, ndev_ifindex);
}

static void events(void)
{
	TYPE(enum ibv_event_type);
	VALUE(IBV_EVENT_CQ_ERR);
	VALUE(IBV_EVENT_QP_FATAL);
	VALUE(IBV_EVENT_QP_REQ_ERR);
	VALUE(IBV_EVENT_QP_ACCESS_ERR);
	VALUE(IBV_EVENT_COMM_EST);
	VALUE(IBV_EVENT_SQ_DRAINED);
	VALUE(IBV_EVENT_PATH_MIG);
	VALUE(IBV_EVENT_PATH_MIG_ERR);
	VALUE(IBV_EVENT_DEVICE_FATAL);
	VALUE(IBV_EVENT_PORT_ACTIVE);
	VALUE(IBV_EVENT_PORT_ERR);
	VALUE(IBV_EVENT_LID_CHANGE);
	VALUE(IBV_EVENT_PKEY_CHANGE);
	VALUE(IBV_EVENT_SM_CHANGE);
	VALUE(IBV_EVENT_SRQ_ERR);
	VALUE(IBV_EVENT_SRQ_LIMIT_REACHED);
	VALUE(IBV_EVENT_QP_LAST_WQE_REACHED);
	VALUE(IBV_EVENT_CLIENT_REREGISTER);
	VALUE(IBV_EVENT_GID_CHANGE);
	VALUE(IBV_EVENT_WQ_FATAL);
	SINCE_65(VALUE(IBV_EVENT_DEVICE_SPEED_CHANGE));

	TYPE(struct ibv_async_event);
	FIELD(struct ibv_async_event, element);
	FIELD(struct ibv_async_event, element.cq);
	FIELD(struct ibv_async_event, element.qp);
	FIELD(struct ibv_async_event, element.srq);
	FIELD(struct ibv_async_event, element.wq);
	FIELD(struct ibv_async_event, element.port_num);
	FIELD(struct ibv_async_event, event_type);
}

static void numbers_with_names(void)
{
	TYPE(enum ibv_wc_status);
	VALUE(IBV_WC_SUCCESS);
	VALUE(IBV_WC_LOC_LEN_ERR);
	VALUE(IBV_WC_LOC_QP_OP_ERR);
	VALUE(IBV_WC_LOC_EEC_OP_ERR);
	VALUE(IBV_WC_LOC_PROT_ERR);
	VALUE(IBV_WC_WR_FLUSH_ERR);
	VALUE(IBV_WC_MW_BIND_ERR);
	VALUE(IBV_WC_BAD_RESP_ERR);
	VALUE(IBV_WC_LOC_ACCESS_ERR);
	VALUE(IBV_WC_REM_INV_REQ_ERR);
	VALUE(IBV_WC_REM_ACCESS_ERR);
	VALUE(IBV_WC_REM_OP_ERR);
	VALUE(IBV_WC_RETRY_EXC_ERR);
	VALUE(IBV_WC_RNR_RETRY_EXC_ERR);
	VALUE(IBV_WC_LOC_RDD_VIOL_ERR);
	VALUE(IBV_WC_REM_INV_RD_REQ_ERR);
	VALUE(IBV_WC_REM_ABORT_ERR);
	VALUE(IBV_WC_INV_EECN_ERR);
	VALUE(IBV_WC_INV_EEC_STATE_ERR);
	VALUE(IBV_WC_FATAL_ERR);
	VALUE(IBV_WC_RESP_TIMEOUT_ERR);
	VALUE(IBV_WC_GENERAL_ERR);
	VALUE(IBV_WC_TM_ERR);
	VALUE(IBV_WC_TM_RNDV_INCOMPLETE);

	TYPE(enum ibv_wr_opcode);
	VALUE(IBV_WR_RDMA_WRITE);
	VALUE(IBV_WR_RDMA_WRITE_WITH_IMM);
	VALUE(IBV_WR_SEND);
	VALUE(IBV_WR_SEND_WITH_IMM);
	VALUE(IBV_WR_RDMA_READ);
	VALUE(IBV_WR_ATOMIC_CMP_AND_SWP);
	VALUE(IBV_WR_ATOMIC_FETCH_AND_ADD);
	VALUE(IBV_WR_LOCAL_INV);
	VALUE(IBV_WR_BIND_MW);
	VALUE(IBV_WR_SEND_WITH_INV);
	VALUE(IBV_WR_TSO);
	VALUE(IBV_WR_DRIVER1);
	SINCE_56(VALUE(IBV_WR_FLUSH));
	SINCE_44(VALUE(IBV_WR_ATOMIC_WRITE));
}

static void mlx5(void)
{
	TYPE(enum mlx5dv_context_attr_flags);
	VALUE(MLX5DV_CONTEXT_FLAGS_DEVX);

	SINCE_65(TYPE(enum mlx5dv_context_attr_comp_mask));
	SINCE_65(VALUE(MLX5DV_CONTEXT_ATTR_MASK_FD_ARRAY));

	SINCE_65(TYPE(struct ibv_fd_arr));
	SINCE_65(FIELD(struct ibv_fd_arr, arr));
	SINCE_65(FIELD(struct ibv_fd_arr, count));

	SIZE_SINCE_65(struct mlx5dv_context_attr, fds);
	FIELD(struct mlx5dv_context_attr, flags);
	FIELD(struct mlx5dv_context_attr, comp_mask);
	SINCE_65(FIELD(struct mlx5dv_context_attr, fds));
	SINCE_44(VALUE(MLX5DV_QUERY_PORT_VPORT));
	SINCE_44(VALUE(MLX5DV_QUERY_PORT_VPORT_VHCA_ID));
	SINCE_44(VALUE(MLX5DV_QUERY_PORT_VPORT_STEERING_ICM_RX));
	SINCE_44(VALUE(MLX5DV_QUERY_PORT_VPORT_STEERING_ICM_TX));
	SINCE_44(VALUE(MLX5DV_QUERY_PORT_VPORT_REG_C0));
	SINCE_44(VALUE(MLX5DV_QUERY_PORT_ESW_OWNER_VHCA_ID));

	SINCE_44(TYPE(struct mlx5dv_reg));
	SINCE_44(FIELD(struct mlx5dv_reg, value));
	SINCE_44(FIELD(struct mlx5dv_reg, mask));

	SINCE_44(TYPE(struct mlx5dv_port));
	SINCE_44(FIELD(struct mlx5dv_port, flags));
	SINCE_44(FIELD(struct mlx5dv_port, vport));
	SINCE_44(FIELD(struct mlx5dv_port, vport_vhca_id));
	SINCE_44(FIELD(struct mlx5dv_port, esw_owner_vhca_id));
	SINCE_44(FIELD(struct mlx5dv_port, rsvd0));
	SINCE_44(FIELD(struct mlx5dv_port, vport_steering_icm_rx));
	SINCE_44(FIELD(struct mlx5dv_port, vport_steering_icm_tx));
	SINCE_44(FIELD(struct mlx5dv_port, reg_c0));
}

static void umad(void)
{
	SINCE_65(VALUE(UMAD_MAX_DEVICES));
	VALUE(UMAD_CA_NAME_LEN);
	VALUE(UMAD_CA_MAX_PORTS);

	TYPE(umad_port_t);
	FIELD(umad_port_t, ca_name);
	FIELD(umad_port_t, portnum);
	FIELD(umad_port_t, base_lid);
	FIELD(umad_port_t, lmc);
	FIELD(umad_port_t, sm_lid);
	FIELD(umad_port_t, sm_sl);
	FIELD(umad_port_t, state);
	FIELD(umad_port_t, phys_state);
	FIELD(umad_port_t, rate);
	FIELD(umad_port_t, capmask);
	FIELD(umad_port_t, gid_prefix);
	FIELD(umad_port_t, port_guid);
	FIELD(umad_port_t, pkeys_size);
	FIELD(umad_port_t, pkeys);
	FIELD(umad_port_t, link_layer);

	TYPE(umad_ca_t);
	FIELD(umad_ca_t, ca_name);
	FIELD(umad_ca_t, node_type);
	FIELD(umad_ca_t, numports);
	FIELD(umad_ca_t, fw_ver);
	FIELD(umad_ca_t, ca_type);
	FIELD(umad_ca_t, hw_ver);
	FIELD(umad_ca_t, node_guid);
	FIELD(umad_ca_t, system_guid);
	FIELD(umad_ca_t, ports);

	TYPE(struct umad_device_node);
	FIELD(struct umad_device_node, next);
	FIELD(struct umad_device_node, ca_name);
}

int main(void)
{
	devices();
	device_attributes();
	ports();
	gids();
	events();
	numbers_with_names();
	mlx5();
	umad();
	if (left_out)
		fprintf(stderr, "%d lines are of a newer rdma-core than %d\n", left_out, RDMA_CORE);
	return 0;
}
