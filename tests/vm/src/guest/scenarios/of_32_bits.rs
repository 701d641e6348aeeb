//! Programs of 32 bits on this kernel of 64, with the C interface: their structures are others. It is
//! `tests/capi/canaries.c`, static, for i686 on x86-64 and for armv7 on 64-bit Arm.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use uverbs_mlx5_function::description::Description;
use uverbs_vm::OF_32_BITS;

use crate::lab::mlx5::Mlx5;
use crate::lab::{self, run, skip};

/// Canaries around every structure that a C function writes, on soft RoCE.
pub(crate) fn canaries() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    untouched()
}

/// The same on an mlx5 device, which answers more.
pub(crate) fn canaries_on_mlx5() -> Result<()> {
    let _device = Mlx5::bind(0, &Description::roce())?;
    untouched()
}

fn untouched() -> Result<()> {
    if !Path::new(OF_32_BITS).exists() {
        return Err(skip(if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            "no program of 32 bits: its compiler or standard library is not installed"
        } else {
            "Rust has no target for programs of 32 bits that this kernel runs"
        }));
    }
    // It fails if a canary was touched.
    let said = run(&[OF_32_BITS])?;
    let said = said.trim_end();
    let (_, count) = said.split_once("32 bits: canaries around ").context("not of 32 bits")?;
    let count = count.split(' ').next().unwrap_or_default().parse::<usize>()?;
    ensure!(said.contains(", 0 touched,"), "{said}");
    // More than what is asked without a device.
    ensure!(count > 100, "{said}");
    println!("figure: {said}");
    Ok(())
}
