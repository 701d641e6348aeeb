//! The functions of `<infiniband/umad.h>` that read sysfs.
