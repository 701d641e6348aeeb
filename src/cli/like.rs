//! The programs whose choice `choose --like` shows, by release.

use uverbs::choose::plan::Model;
use uverbs::choose::{nccl, ucx};
use uverbs::inventory::SettingsReading;

/// A program, of its newest release or of a named one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Like {
    Nccl(nccl::Release),
    Nvshmem,
    Ucx(ucx::Release),
}

impl Like {
    /// All that [`FromStr`](std::str::FromStr) reads: each program, and its releases that choose differently.
    pub(crate) fn names() -> Vec<String> {
        let mut names = ["nccl", "nvshmem", "ucx"].map(str::to_owned).to_vec();
        names.extend(first_of_nccl().iter().map(|own| name("nccl", own)));
        names.extend(first_of_ucx().iter().map(|own| name("ucx", own)));
        names
    }

    /// How it reads files of settings; only NCCL reads any.
    pub(crate) fn reading(self) -> SettingsReading {
        match self {
            Self::Nccl(release) => release.into(),
            Self::Nvshmem | Self::Ucx(_) => SettingsReading::NEWEST,
        }
    }

    pub(crate) fn model<'v>(self, variable: impl Fn(&str) -> Option<&'v str>) -> Model {
        let nccl = |own| Model::Nccl(nccl::Settings::new(own, &variable));
        match self {
            Self::Nccl(release) => nccl(nccl::Implementation::Nccl(release)),
            Self::Nvshmem => nccl(nccl::Implementation::Nvshmem),
            Self::Ucx(release) => Model::Ucx(ucx::Settings::new(release, &variable)),
        }
    }
}

impl std::str::FromStr for Like {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (program, release) = text.split_once('-').map_or((text, None), |(a, b)| (a, Some(b)));
        // None is no version at all; what is no number is no version either.
        let version = match release {
            None => Some(None),
            Some(release) => version(release).map(Some),
        };
        match (program, version) {
            ("nccl", Some(None)) => Ok(Self::Nccl(nccl::Release::NEWEST)),
            ("nccl", Some(Some(own))) if is_known(own, &first_of_nccl()) => {
                let [major, minor, patch] = own;
                Ok(Self::Nccl(nccl::Release::of(major, minor, patch)))
            }
            ("nccl", Some(Some(_))) => Err(unknown(text, program, &first_of_nccl())),
            ("ucx", Some(None)) => Ok(Self::Ucx(ucx::Release::NEWEST)),
            ("ucx", Some(Some(own))) if own >= OLDEST_UCX && is_known(own, &first_of_ucx()) => {
                let [major, minor, _] = own;
                Ok(Self::Ucx(ucx::Release::of(major, minor)))
            }
            ("ucx", Some(Some(_))) => Err(unknown(text, program, &first_of_ucx())),
            ("nvshmem", Some(None)) => Ok(Self::Nvshmem),
            _ => Err("expected nccl, ucx or nvshmem, or a release: nccl-2.20, ucx-1.13".to_owned()),
        }
    }
}

/// Before 1.10 UCX did not use all devices that it uses since.
const OLDEST_UCX: [u32; 3] = [1, 10, 0];

/// The first version of each release of NCCL that chooses differently, ascending.
fn first_of_nccl() -> Vec<[u32; 3]> {
    nccl::Release::ALL.iter().map(|(_, first)| *first).collect()
}

/// The same of UCX.
fn first_of_ucx() -> Vec<[u32; 3]> {
    ucx::Release::ALL.iter().map(|(_, [major, minor])| [*major, *minor, 0]).collect()
}

/// The numbers of a version with two or three parts.
fn version(text: &str) -> Option<[u32; 3]> {
    let numbers: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
    match *numbers? {
        [major, minor] => Some([major, minor, 0]),
        [major, minor, patch] => Some([major, minor, patch]),
        _ => None,
    }
}

/// Whether a version is no newer than the newest known one, but for its patch level.
fn is_known([major, minor, _]: [u32; 3], known: &[[u32; 3]]) -> bool {
    known.last().is_some_and(|newest| major == newest[0] && minor <= newest[1])
}

fn name(program: &str, version: &[u32; 3]) -> String {
    match version {
        [major, minor, 0] => format!("{program}-{major}.{minor}"),
        [major, minor, patch] => format!("{program}-{major}.{minor}.{patch}"),
    }
}

/// Says which versions are known.
fn unknown(text: &str, program: &str, known: &[[u32; 3]]) -> String {
    let mut names: Vec<String> = known.iter().map(|own| name(program, own)).collect();
    if let Some(first) = names.first_mut() {
        first.push_str(" and older");
        if program == "ucx" {
            first.push_str(" from ucx-1.10 on");
        }
    }
    format!("{text} is not known; known are {}, each up to the next", names.join(", "))
}
