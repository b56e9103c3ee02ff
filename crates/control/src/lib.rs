//! Executes a plan: engines by kind, stages in order, works side by side, slices merged, events out.
