/** What goes over HTTP, as types: by hand after `crates/controller/src/api.rs`, field by field. */

export type Role = 'viewer' | 'operator' | 'driver';

export interface Info {
  name: string;
  version: string;
  role: Role;
  user: string;
  started_unix_ms: number;
  largest_document: number;
  troubles: string[];
}

export interface Login {
  token: string;
}

export interface Trouble {
  message: string;
  problems?: Problem[];
}

export interface Problem {
  warning: boolean;
  /** From 1; 0 where the whole document is meant. */
  line: number;
  column: number;
  length: number;
  message: string;
  help: string;
}

export interface Overview {
  drivers: Driver[];
  active: Submission[];
  queue: Submission[];
  recent: Submission[];
  troubles: string[];
}

export type DriverState = 'idle' | 'busy' | 'silent' | 'gone';

export interface Driver {
  name: string;
  state: DriverState;
  host: string;
  address: string;
  version: string;
  cpu: string;
  cores: number;
  memory_bytes: number;
  /** Share of 1. */
  cpu_busy: number;
  memory_used_bytes: number;
  received_per_s: number;
  sent_per_s: number;
  clock_error_us: number;
  silent_ms: number;
  joined_unix_ms: number;
  submission: number | null;
}

export type SubmissionState = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled' | 'interrupted';

export interface Submission {
  id: number;
  name: string;
  format: string;
  by: string;
  priority: number;
  state: SubmissionState;
  reason: string;
  submitted_unix_ms: number;
  started_unix_ms: number | null;
  ended_unix_ms: number | null;
  expected_ms: number | null;
  /** Share of 1. */
  progress: number | null;
  stage: string;
  drivers: string[];
  run: number | null;
  evaluation: number | null;
  valid: boolean | null;
  headline: string;
  operations: string;
  /** Successful operations per second while it goes on, the latest last; where the controller tells it. */
  rates?: number[];
}

export interface Submit {
  document: string;
  priority?: number;
  drivers?: string[];
  driver_count?: number;
  seed?: number;
  skip_preflight?: boolean;
}

export interface Change {
  priority?: number;
  before?: number;
}

export interface Cancel {
  at_once: boolean;
}

export interface CheckRequest {
  document: string;
}

export interface Check {
  ok: boolean;
  format: string;
  name: string;
  problems: Problem[];
  explanation: string[];
  stages: CheckedStage[];
  expected_ms: number | null;
  bytes: number | null;
}

export interface CheckedStage {
  name: string;
  works: string[];
  expected_ms: number | null;
}

export interface LiveRun {
  submission: number;
  run: number | null;
  stages: LiveStage[];
  seconds: LiveSecond[];
  nodes: LiveNode[];
  troubles: string[];
  last_event: number;
}

export interface LiveStage {
  id: string;
  name: string;
  state: string;
  reason: string;
  started_unix_ms: number | null;
  ended_unix_ms: number | null;
  expected_ms: number | null;
  expected_operations: number | null;
  operations: number;
  works: LiveWork[];
}

export interface LiveWork {
  name: string;
  workers: number;
  operations: string[];
}

export interface LiveSecond {
  /** Which stage, from 0. */
  stage: number;
  /** Which work of it, from 0. */
  work: number;
  /** Which second since the work's start. */
  index: number;
  unix_ms: number;
  operations: LiveOperation[];
  unmeasured: number;
  in_flight: number;
  backlog: number;
  busy: number;
  drivers: LiveShare[];
}

export interface LiveOperation {
  ok: number;
  failed: number;
  bytes: number;
  mean_us: number;
  p50_us: number;
  p95_us: number;
  p99_us: number;
  max_us: number;
}

export interface LiveShare {
  driver: string;
  ok: number;
  failed: number;
  bytes: number;
  p50_us: number;
  p99_us: number;
  busy: number;
}

export interface LiveNode {
  name: string;
  generates: boolean;
  unix_ms: number;
  cpu_busy: number;
  memory_used_bytes: number;
  received_per_s: number;
  sent_per_s: number;
}

/** Events of the stream: name and content. */
export interface LiveEvents {
  overview: Overview;
  second: LiveSecond;
  stages: LiveStage[];
  nodes: LiveNode[];
  trouble: string;
  ended: Submission;
  missed: number;
}

export interface RunRow {
  id: number;
  name: string;
  started_unix_ms: number;
  elapsed_ms: number;
  state: string;
  valid: boolean | null;
  operations: number;
  failed: number;
  headline: string;
  evaluation: number | null;
  submission: number | null;
}

export interface Figure {
  name: string;
  title: string;
  description: string;
  stage: string;
  work: string;
}

export interface MatrixRow {
  run: number;
  name: string;
  started_unix_ms: number;
  state: string;
  valid: boolean | null;
  stage: string;
  work: string;
  operation: string;
  sample: string;
  weight: number;
  workers: number;
  drivers: number;
  ok: number;
  failed: number;
  bytes: number;
  throughput: number;
  bandwidth: number;
  mean_us: number;
  /** At 50, 60, 80, 90, 95, 99, 99.9, 99.99 and 100 %. */
  percentiles_us: number[];
  success_ratio: number;
  config: string;
}

export interface Comparison {
  outcome: string;
  sentence: string;
  invalid: string[];
  rows: ComparisonRow[];
  /** Titles and SVG. */
  figures: [string, string][];
}

export interface ComparisonRow {
  load: string;
  metric: string;
  a: number;
  b: number;
  ratio: number;
  interval: [number, number] | null;
  outcome: string;
}

export interface EvaluationRow {
  id: number;
  name: string;
  started_unix_ms: number;
  state: string;
  valid: boolean | null;
  headline: string;
  runs: number;
}

export interface AuditRow {
  id: number;
  unix_ms: number;
  by: string;
  address: string;
  what: string;
  detail: string;
}
