/**
 * A stored run as `tidemark report --format json` has it (schema 1): the fields that the console shows. By hand after
 * `crates/report/src/json.rs`. Fields marked optional are those that older records lack.
 */

export interface RunRecord {
  schema: number;
  id: number;
  name: string;
  description: string;
  /** RFC 3339, UTC. */
  started: string;
  elapsed_ns: number;
  state: string;
  valid: boolean;
  invalid_reasons: string[];
  findings: Finding[];
  notes: { topic: string; text: string }[];
  provenance: Provenance;
  stages: RunStage[];
  drivers?: RunDriver[];
}

export type Severity = 'good' | 'note' | 'warning' | 'critical';

export interface Finding {
  severity: Severity;
  rule: string;
  title: string;
  detail: string;
  evidence: string[];
  stage: string | null;
  work: string | null;
  stages: string[];
  invalidates: boolean;
}

export interface Provenance {
  tidemark: string;
  command: string;
  path: string;
  format: string;
  document: string;
  seed: number;
  targets: string[];
  host: string;
  kernel: string;
  cpu: string;
  cores: number;
  memory_bytes: number;
}

export interface RunStage {
  id: string;
  name: string;
  state: string;
  reason: string;
  started_ns: number;
  ended_ns: number;
  works: RunWork[];
  shares?: RunShare[];
}

export interface RunWork {
  name: string;
  kind: string;
  workers: number;
  depth: number;
  threads: number;
  offered_per_s: number | null;
  window_start_ns: number;
  window_end_ns: number;
  unsent: number;
  undone: number;
  given_up: string;
  operations: RunOperation[];
  examples: { fault: string; text: string }[];
}

export interface RunOperation {
  label: string;
  kind: string;
  sample: string;
  weight_percent: number;
  config: string;
  ok: number;
  failed: number;
  success_ratio: number | null;
  bytes: number;
  retries: number;
  throughput_per_s: number;
  bandwidth_bytes_per_s: number;
  faults: Record<string, number>;
  response: Distribution | null;
  service: Distribution | null;
  first_byte: Distribution | null;
  lag: Distribution | null;
}

export interface Distribution {
  count: number;
  mean_ns: number;
  min_ns: number;
  max_ns: number;
  /** By name: `p50` to `p99.99`. */
  percentiles_ns: Record<string, number>;
}

export interface RunDriver {
  name: string;
  host: string;
  kernel: string;
  cpu: string;
  cores: number;
  memory_bytes: number;
  clock_error_ns: number;
  lost: { at_ns: number; reason: string } | null;
}

export interface RunShare {
  driver: number;
  work: number;
  workers: number;
  ok: number;
  failed: number;
  bytes: number;
  first_sent_ns: number | null;
  complete: boolean;
}
