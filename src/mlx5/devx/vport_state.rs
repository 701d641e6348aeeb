//! The state of a vport.

use uverbs_uapi::mlx5_firmware::{
    QueryVportStateOutput, opcode, vport_admin_state, vport_state, vport_state_mod,
};

use super::vport::{Vport, vport_input};
use super::{DevxContext, query};
use crate::error::Result;
use crate::named::named;
use crate::port::Rate;

/// The side of a vport whose state a query is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VportSide {
    /// The function's side.
    #[default]
    Function,
    /// The e-switch's side.
    Eswitch,
    /// The e-switch's wire. There is only one, so the vport does not matter.
    Uplink,
}

named! {
    /// Requested state of a vport.
    VportAdminState(u8) {
        /// Down.
        DOWN = vport_admin_state::DOWN, "down";
        /// Up.
        UP = vport_admin_state::UP, "up";
        /// The state of the uplink.
        AUTO = vport_admin_state::AUTO, "auto";
    }
}

named! {
    /// State of a vport.
    VportLinkState(u8) {
        /// Down.
        DOWN = vport_state::DOWN, "down";
        /// Up.
        UP = vport_state::UP, "up";
    }
}

/// State of a vport.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VportState {
    /// The requested state.
    pub admin_state: VportAdminState,
    /// The actual state.
    pub state: VportLinkState,
    /// Limit of the transmit rate; `None` if there is none or the firmware does not say.
    pub max_tx_speed: Option<Rate>,
}

/// Asks for a vport's state: `QUERY_VPORT_STATE`.
///
/// ```no_run
/// # fn main() -> Result<(), uverbs::Error> {
/// use uverbs::mlx5::devx::{self, Vport, VportSide};
/// use uverbs::mlx5::port::VportNumber;
///
/// let context = devx::open(&uverbs::Host::new().device("mlx5_0")?)?;
/// let own = devx::query_vport_state(&context, VportSide::Function, Vport::Own)?;
/// let first_vf = Vport::Other(VportNumber(1));
/// let vf = devx::query_vport_state(&context, VportSide::Eswitch, first_vf)?;
/// println!("own {}, the first VF's {}", own.state, vf.state);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`general_cmd`](super::general_cmd). The firmware refuses a vport that does not exist or that the
/// caller may not ask about.
pub fn query_vport_state(
    context: &DevxContext,
    side: VportSide,
    vport: Vport,
) -> Result<VportState> {
    let op_mod = match side {
        VportSide::Function => vport_state_mod::VNIC_VPORT,
        VportSide::Eswitch => vport_state_mod::ESW_VPORT,
        VportSide::Uplink => vport_state_mod::UPLINK,
    };
    let input = vport_input(opcode::QUERY_VPORT_STATE, op_mod, 0, vport);
    let output: QueryVportStateOutput = query(context, &input)?;
    let speed = output.max_tx_speed.get();
    Ok(VportState {
        admin_state: VportAdminState(output.states >> 4),
        state: VportLinkState(output.states & 0b1111),
        max_tx_speed: (speed != 0).then(|| Rate(speed.into())),
    })
}
