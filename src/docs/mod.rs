//! Pages beside the reference: the same Markdown files as in `src/docs` of the repository.

#[doc = include_str!("architecture.md")]
pub mod architecture {}

#[doc = include_str!("commands.md")]
pub mod commands {}

#[doc = include_str!("choosing.md")]
pub mod choosing {}

#[doc = include_str!("watch.md")]
pub mod watch {}

#[doc = include_str!("containers.md")]
pub mod containers {}

#[doc = include_str!("kubernetes.md")]
pub mod kubernetes {}

#[doc = include_str!("slurm.md")]
pub mod slurm {}

#[doc = include_str!("c.md")]
pub mod c {}

#[doc = include_str!("figures.md")]
pub mod figures {}

#[doc = include_str!("metrics.md")]
pub mod metrics {}

#[doc = include_str!("testing.md")]
pub mod testing {}
