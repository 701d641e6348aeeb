//! The programs whose choice `choose --like` shows, by release.

use uverbs::choose::plan::Model;
use uverbs::choose::{nccl, ucx};
use uverbs::inventory::Reading;

/// A program, of its newest release or of a named one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Like {
    Nccl(nccl::Release),
    Nvshmem,
    Ucx(ucx::Release),
}

impl Like {
    /// How it reads files of settings; only NCCL reads any.
    pub(crate) fn reading(self) -> Reading {
        match self {
            Self::Nccl(release) => release.into(),
            Self::Nvshmem | Self::Ucx(_) => Reading::NEWEST,
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

/// The first version of each release of NCCL that chooses differently; the first entry has all before it too.
const NCCL: [[u32; 3]; 7] =
    [[2, 20, 0], [2, 21, 0], [2, 22, 0], [2, 23, 0], [2, 26, 0], [2, 30, 0], [2, 30, 7]];

/// The same of UCX.
const UCX: [[u32; 3]; 5] = [[1, 15, 0], [1, 16, 0], [1, 18, 0], [1, 21, 0], [1, 22, 0]];

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
            ("nccl", Some(Some(own))) if is_known(own, &NCCL) => {
                let [major, minor, patch] = own;
                Ok(Self::Nccl(nccl::Release::of(major, minor, patch)))
            }
            ("nccl", Some(Some(_))) => Err(unknown(text, program, &NCCL)),
            ("ucx", Some(None)) => Ok(Self::Ucx(ucx::Release::NEWEST)),
            ("ucx", Some(Some(own))) if is_known(own, &UCX) => {
                let [major, minor, _] = own;
                Ok(Self::Ucx(ucx::Release::of(major, minor)))
            }
            ("ucx", Some(Some(_))) => Err(unknown(text, program, &UCX)),
            ("nvshmem", Some(None)) => Ok(Self::Nvshmem),
            _ => Err("expected nccl, ucx or nvshmem, or a release: nccl-2.20, ucx-1.13".to_owned()),
        }
    }
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

/// Says which versions are known.
fn unknown(text: &str, program: &str, known: &[[u32; 3]]) -> String {
    let name = |own: &[u32; 3]| match own {
        [major, minor, 0] => format!("{program}-{major}.{minor}"),
        [major, minor, patch] => format!("{program}-{major}.{minor}.{patch}"),
    };
    let mut names: Vec<String> = known.iter().map(name).collect();
    if let Some(first) = names.first_mut() {
        first.push_str(" and older");
    }
    format!("{text} is not known; known are {}, each up to the next", names.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Each release of the library is in the list once, and the list goes to the newest.
    #[test]
    fn the_list_is_that_of_the_library() {
        let nccl = |[major, minor, patch]: [u32; 3]| nccl::Release::of(major, minor, patch);
        let listed: BTreeSet<_> = NCCL.into_iter().map(nccl).collect();
        let all = (0..=31).flat_map(|minor| (0..=9).map(move |patch| nccl([2, minor, patch])));
        assert_eq!((listed.len(), &listed), (NCCL.len(), &all.collect()));
        assert_eq!(listed.last(), Some(&nccl::Release::NEWEST));
        let ucx = |[major, minor, _]: [u32; 3]| ucx::Release::of(major, minor);
        let listed: BTreeSet<_> = UCX.into_iter().map(ucx).collect();
        let all = (0..=30).map(|minor| ucx([1, minor, 0]));
        assert_eq!((listed.len(), &listed), (UCX.len(), &all.collect()));
        assert_eq!(listed.last(), Some(&ucx::Release::NEWEST));
        // What a release changed, it changed with its first version.
        for own in NCCL.into_iter().skip(1) {
            let [major, minor, patch] = own;
            let before = if patch > 0 { [major, minor, patch - 1] } else { [major, minor - 1, 99] };
            assert!(nccl(before) < nccl(own), "{own:?}");
        }
        for own in UCX.into_iter().skip(1) {
            assert!(ucx([own[0], own[1] - 1, 0]) < ucx(own), "{own:?}");
        }
    }
}
