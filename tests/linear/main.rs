//! What the command costs, in instructions.

#[cfg(test)]
mod lists;
