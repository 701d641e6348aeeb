//! The time for every input is proportional to its size. valgrind counts the command's instructions at n, 2n and 4n
//! elements of each kind of list that a snapshot has, and of files.
//!
//! If the cost is linear, the second step is twice the first; if it is quadratic, four times. No clock is
//! used, so a loaded machine is no failure. Without valgrind the test fails and says so.
//!
//! `UVERBS_TEST_PROGRAM` names the program; the released one takes a tenth of the debug build's instructions.
//! All are counted, unless `UVERBS_LINEAR_SEED` is set: then a tenth, and ten seeds that follow one another
//! have all.

#[cfg(test)]
mod count;
#[cfg(test)]
mod expected;
#[cfg(test)]
mod files;
#[cfg(test)]
mod host;
#[cfg(test)]
mod recording;
#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod turn;
