/** Made from `crates/serve/openapi.json` by `npm run types`: not to be edited. */

/** What the answer of a query was compared with. */
export type Answer = 'not_checked' | 'known' | 'others' | 'differs';

/** An entry of the audit log. */
export interface AuditRow {
  /** Address it came from. */
  address: string;
  /** Name of the user's token, or empty. */
  by: string;
  /** Details; never a secret. */
  detail: string;
  /** Its number. */
  id: number;
  /** When. */
  unix_ms: number;
  /** What: `submit`, `cancel`, `change`, `resubmit`, `delete run`, `login`, `refused`, `driver joined`, `driver lost`, ... */
  what: string;
}

/** What is varied, and its value at this point. */
export interface Axis {
  /** What is varied: `block_size`. */
  name: string;
  unit: AxisUnit | null;
  /** Its value at this point. */
  value: AxisScalar;
}

/** A number or a word. */
export type AxisScalar = number | string;

/** What the numbers on an axis count. */
export type AxisUnit = 'count' | 'bytes' | 'operations_per_second';

/** What is under the file of a loop device. */
export interface Behind {
  /** The kernel name of the device that it lies on. */
  device: string;
  /** The file. */
  file: string;
  /** Bytes of that device's reads. */
  read_bytes: number;
  /** Bytes of that device's writes. */
  written_bytes: number;
}

/** The state of the page cache that a document declares for the start of the load. */
export type Cache = 'cold' | 'warm';

/** A layer that may have had the tables' data in memory. */
export interface CacheLayer {
  /** The most bytes that it can hold; `None` where that is not known. */
  bytes: number | null;
  /** Whether it keeps data, rather than only what describes them. */
  holds_data: boolean;
  /** Whether it held none of the data when queries began. */
  is_dropped: boolean;
  /** Which: `page cache of this machine`. */
  layer: string;
  /** What is known of it: `files dropped before every query`. */
  state: string;
}

/** How to cancel. */
export interface Cancel {
  /** Stop at once without cleanup, instead of ending the load, keeping the results and cleaning up. */
  at_once?: boolean;
}

/** What several findings come from, or are about. */
export type Cause = 'failures' | 'drivers' | 'conduct' | 'generator' | 'limits' | 'proof' | 'certainty';

/** One point of a sweep, and which of its repeats. */
export interface Cell {
  /** Its place on every axis, in the document's order: `block_size` `4 KiB`, `clients` `8`. */
  axes: Axis[];
  /** What drove it: `native` or `fio`. */
  engine: string;
  /** From 1. */
  repeat: number;
  /** Of how many. */
  repeats: number;
  /** The sweep it is a point of: the load's name in the document. */
  sweep: string;
}

/** A new priority or position in the queue. */
export interface Change {
  /** Move it directly before this submission and give it the same priority. */
  before?: number | null;
  /** The new priority, -100 to 100. */
  priority?: number | null;
}

/** The result of checking a document. */
export interface Check {
  /** Bytes it will store, if known. */
  bytes: number | null;
  /** Expected duration, milliseconds, if known. */
  expected_ms: number | null;
  /** What it does, one sentence per line. */
  explanation: string[];
  /** Its format. */
  format: string;
  /** Its name. */
  name: string;
  /** Whether the document can run. */
  ok: boolean;
  /** Errors and warnings. */
  problems: Problem[];
  /** Its stages. */
  stages: CheckedStage[];
}

/** A document to check. */
export interface CheckRequest {
  /** The document. */
  document: string;
  /** The submission that it was made from, as in [`Submit::from`]. */
  from?: number | null;
}

/** A stage of a document. */
export interface CheckedStage {
  /** Expected duration, milliseconds, if known. */
  expected_ms: number | null;
  /** Its name. */
  name: string;
  /** Its works, one line each: `64 workers: 70 % read, 30 % write, for 60 s`. */
  works: string[];
}

/** One operation of one load, in both groups. */
export interface ComparedOperation {
  a: ComparedSide | null;
  b: ComparedSide | null;
  /** Which load. */
  load: string;
  /** The operation's name. */
  operation: string;
}

/** One run of a group, second by second. */
export interface ComparedRun {
  /** The run. */
  run: number;
  /** The whole seconds of its window; at most 600, each of them the mean of as many as it takes. */
  seconds: ComparedSecond[];
}

/** A second of an operation, or several. */
export interface ComparedSecond {
  /** When it began, seconds since the work's start. */
  at: number;
  /** 99th percentile of the latency, microseconds; of several seconds, the largest. */
  p99_us: number;
  /** Successes per second. */
  throughput: number;
}

/** What a group of runs did of an operation. Latencies are response times, microseconds. */
export interface ComparedSide {
  /** Bytes per second: mean of the runs. */
  bandwidth: number;
  /** Its selectors and settings as the document wrote them. */
  config: string;
  /** Failures of all runs. */
  failed: number;
  /** Mean latency over the operations of all runs; null where it is not known. */
  mean_us: number | null;
  /** Successes of all runs. */
  ok: number;
  /** Shares of the operations of all runs, 0 to 1, and the latency that they do not exceed; ascending. */
  percentiles_us: [number, number][];
  /** Each run, second by second. */
  runs: ComparedRun[];
  /** Operations per second: mean of the runs. */
  throughput: number;
  /** Workers of the work. */
  workers: number;
}

/** A comparison of two groups of runs. */
export interface Comparison {
  /** Whether anything was done on both sides that can be compared. */
  comparable: boolean;
  /** Figures: titles and SVG. */
  figures: [string, string][];
  /** Why the numbers are unreliable, if they are. */
  invalid: string[];
  /** The share within which the groups count as equal, if one was asked for. */
  margin: number | null;
  /** One entry per load and operation of either group. */
  operations: ComparedOperation[];
  /** `better`, `worse`, `better in part, worse in part`, `cannot tell`, `not tested`; with a margin also `equal within the margin`, `not worse than the margin`, `inconclusive`. */
  outcome: string;
  /** One row per load and metric. */
  rows: ComparisonRow[];
  /** The outcome in one sentence. */
  sentence: string;
}

/** One metric of both groups. */
export interface ComparisonRow {
  /** Of the first group. */
  a: number;
  /** Of the second. */
  b: number;
  /** The smallest difference that would be found in four of five cases, as a share; null without repeats. */
  detectable: number | null;
  /** Confidence interval of the ratio, all rows together 95 %; null without repeats. */
  interval: [number, number] | null;
  /** Which load. */
  load: string;
  /** Which metric: `throughput`, `mean response time`. */
  metric: string;
  /** `better`, `worse`, `cannot tell below 4.2 %`, `too few repeats`. */
  outcome: string;
  /** b divided by a. */
  ratio: number;
  /** Its unit. */
  unit: MetricUnit;
}

/** A figure of a work, by the name that its users know. */
export interface DeclaredFigure {
  /** What it is, in a few words without a full stop. */
  about: string;
  /** Its name: `NOPM`. */
  name: string;
  /** How it follows from what was counted. */
  of: FigureOf;
  /** The work's name. */
  work: string;
}

/** Differences of one device's counters in `/proc/diskstats` (Linux, Documentation/admin-guide/iostats). */
export interface DeviceUse {
  behind: Behind | null;
  /** Time with at least one request in flight, nanoseconds. */
  busy_ns: number;
  /** Its kernel name: `vda`, `loop3`. */
  device: string;
  /** Bytes of them. */
  discarded_bytes: number;
  /** Discards completed. */
  discards: number;
  /** Flushes completed. */
  flushes: number;
  /** Bytes of them. */
  read_bytes: number;
  /** Reads completed. */
  reads: number;
  /** The volumes that lie on it. */
  volumes: string[];
  /** Time summed over all requests, nanoseconds. */
  waited_ns: number;
  /** Writes completed. */
  writes: number;
  /** Bytes of them. */
  written_bytes: number;
}

/** A distribution in a few numbers. */
export interface Distribution {
  count: number;
  max_ns: number;
  mean_ns: number;
  min_ns: number;
  /** By name: `p50` to `p99.99`. */
  percentiles_ns: Record<string, number>;
}

/** A driver. */
export type Driver = Host &
  Utilization & {
    /** Address it connects from. */
    address: string;
    /** Uncertainty of its clock offset (half the round-trip time), microseconds; `null` while it has answered no ping. */
    clock_error_us: number | null;
    ending: StillEnding | null;
    /** When it joined. */
    joined_unix_ms: number;
    /** Its name. */
    name: string;
    /** Milliseconds since its last message. */
    silent_ms: number;
    /** Its state. */
    state: DriverState;
    /** The submission it runs, if any. */
    submission: number | null;
    /** Tidemark's version there. */
    version: string;
  };

/** What one driver's process moved between storage and memory. */
export type DriverIo = OwnIo & {
  /** Which driver of the run. */
  driver: number;
};

/** The state of a driver. */
export type DriverState = 'idle' | 'busy' | 'ending' | 'silent' | 'gone';

/** What a work is spread over. */
export type EndpointKind = 'endpoint' | 'shared' | 'instance' | 'driver';

/** An evaluation in a list. */
export interface EvaluationRow {
  /** Its verdict, one line. */
  headline: string;
  /** Its number. */
  id: number;
  /** Its name. */
  name: string;
  /** How many runs it has. */
  runs: number;
  /** When it started. */
  started_unix_ms: number;
  /** Its state. */
  state: RunState;
  /** Whether it is VALID. */
  valid: boolean | null;
}

/** One failure, word for word. */
export interface Example {
  /** Its class. */
  fault: Fault;
  /** What happened, e.g. `GET b1/o7: 404 NoSuchKey`; never a secret. */
  text: string;
}

/** Why an operation failed. */
export type Fault =
  | 'refused'
  | 'reset'
  | 'timeout'
  | 'unreachable'
  | 'tls'
  | 'protocol'
  | 'throttled'
  | 'denied'
  | 'not_found'
  | 'conflict'
  | 'precondition'
  | 'client_error'
  | 'server_error'
  | 'wrong_content'
  | 'stale_content'
  | 'truncated_content'
  | 'foreign_content'
  | 'lost_content'
  | 'torn_content'
  | 'misplaced_content'
  | 'broken_invariant'
  | 'wrong_answer'
  | 'serialization'
  | 'deadlock'
  | 'lock_timeout'
  | 'ambiguous'
  | 'constraint'
  | 'unavailable'
  | 'overloaded'
  | 'sql'
  | 'io'
  | 'no_space'
  | 'gone'
  | 'short_transfer'
  | 'unbound'
  | 'unscheduled'
  | 'unmounted'
  | 'unstarted'
  | 'unchanged'
  | 'kept'
  | 'quota'
  | 'local'
  | 'abandoned';

/** A figure of a stored run, as in its report. */
export interface Figure {
  /** Text alternative. */
  description: string;
  /** Its name in URLs. */
  name: string;
  /** The stage, `s3-main`. */
  stage: string;
  /** What it shows. */
  title: string;
  /** The work. */
  work: string;
}

/** What a figure is of. */
export type FigureOf =
  | 'commits_per_minute'
  | {
      /** Operations that succeeded within the window, per minute of it. */
      per_minute: {
        /** Their label. */
        operation: string;
      };
    }
  | {
      /** Operations that succeeded within the window, per minute of it, as a share of the most that can be. */
      share_of_most: {
        /** The most per minute, in thousandths. */
        most_milli_per_minute: number;
        /** Their label. */
        operation: string;
      };
    }
  | 'geometric_mean'
  | 'elapsed'
  | {
      /** The power of a run that is like TPC-H's power test (clause 5.4.1). */
      tpch_power: {
        /** The scale factor, in thousandths. */
        scale_milli: number;
      };
    }
  | {
      /** The throughput of one that is like its throughput test (clause 5.4.2). */
      tpch_throughput: {
        /** The scale factor, in thousandths. */
        scale_milli: number;
        /** Streams of queries. */
        streams: number;
      };
    }
  | {
      /** Both in one number: of this work's throughput, and of the last power before it at the same scale (clause 5.4.3). */
      tpch_composite: {
        /** The scale factor, in thousandths. */
        scale_milli: number;
        /** Streams of queries. */
        streams: number;
      };
    }
  | {
      /** A percentile of the response times within the window. */
      percentile: {
        /** What it may be at most, as far as there is a limit, nanoseconds. */
        limit_ns?: number | null;
        /** The operations' label. */
        operation: string;
        /** Which: 90 is the 90th. */
        percent: number;
      };
    };

/** A finding in JSON: its words and its facts. */
export interface Finding {
  /** What it means and what to do about it; may be empty. */
  detail: string;
  /** Numbers with their units, and the arithmetic. */
  evidence: string[];
  /** What was found, as data; one entry for each place. */
  facts: Record<string, unknown>[];
  /** Whether it makes the run invalid. */
  invalidates: boolean;
  /** The short stable name of what was found, e.g. `outage`. */
  rule: string;
  severity: Severity;
  /** The stage it is about; null: the whole run. */
  stage: string | null;
  /** The stages it is about when there are several. */
  stages: string[];
  /** One plain sentence without a full stop. */
  title: string;
  /** The work it is about; null: the whole stage. */
  work: string | null;
}

/** One of several kinds of a mapping, for forms. */
export interface Form {
  /** What it is. */
  about: string;
  /** Its other keys. */
  keys: FormKey[];
  /** The value of its key `kind`, or the key that it stands under: `s3`, `load`. */
  name: string;
  /** Keys exactly one of which is required; or empty. */
  one_of: string[];
}

/** A key of a mapping, for forms. */
export interface FormKey {
  /** What it is for. */
  about: string;
  /** The words that its value may be; empty if it is none of some words. */
  choices: string[];
  /** The value that it has without being given, or empty. */
  default: string;
  /** A value to begin with, or empty. */
  example: string;
  /** The kinds of mapping that its value may be; empty for a single value. */
  kinds: Form[];
  /** Whether it takes a list, too. */
  list: boolean;
  /** Its name. */
  name: string;
  /** Whether it is required. */
  required: boolean;
  /** Whether its value must be a reference, such as `${NAME}`, for it is a secret. */
  secret: boolean;
  /** How its value is written: `duration`. */
  value: string;
}

/** What all observed gateways to object storage did, for each execution. */
export interface Gateways {
  /** Bytes of them. */
  read_bytes: number;
  /** Objects, or ranges of them, that were read. */
  reads: number;
  /** Objects that were written. */
  writes: number;
  /** Bytes of them. */
  written_bytes: number;
}

/** Findings with one cause. */
export interface Group {
  /** What they come from. */
  cause: Cause;
  /** The finding that says it best, by its place in the list of findings. */
  first: number;
  /** All others, in their order. */
  others: number[];
  /** How grave the gravest is. */
  severity: Severity;
}

/** What happened. */
export type Happened =
  | 'pod_deleted'
  | 'pod_evicted'
  | 'out_of_memory'
  | 'container_ended'
  | 'driver_lost'
  | 'node_not_ready'
  | 'node_ready'
  | 'pod_gone'
  | 'pod_made'
  | 'pod_scheduled'
  | 'container_started'
  | 'pod_not_ready'
  | 'pod_ready'
  | 'volume_attached'
  | 'volume_detached';

/** Something that happened to a pod or a node. */
export interface Happening {
  /** When the process that leads the run was told of it. That is some milliseconds after the API server knew it. */
  at_ns: number;
  /** What Kubernetes says of it, or empty: `OOMKilled, exit code 137`. */
  detail: string;
  /** To what: `pod bench/postgres-0`, `node n1`. */
  object: string;
  /** Whose it is: what replaces a pod has the same owner. A node, and a pod without an owner, are their own. */
  owner: string;
  /** Whether it is part of the load, of what is under load, or a node. */
  part: Part;
  /** What. */
  what: Happened;
}

/** A page of the history. */
export interface History {
  /** Those of this page. */
  rows: HistoryRow[];
  /** All tags in use, at most 200. */
  tags: string[];
  /** How many lines match in all. */
  total: number;
}

/** A line of the history: a run, or a submission that ended without one. */
export interface HistoryRow {
  /** Its arm there, or empty. */
  arm: string;
  /** How long it took, milliseconds. */
  elapsed_ms: number;
  /** The evaluation it belongs to. */
  evaluation: number | null;
  /** The name of that evaluation, or empty. */
  evaluation_name: string;
  /** Failures among them. */
  failed: number;
  figures: RunFigures | null;
  /** The result in one line. */
  headline: string;
  /** Its level there: `workers 8`, or empty. */
  level: string;
  /** Its load there, or empty. */
  load: string;
  /** The document's name. */
  name: string;
  /** Measured operations. */
  operations: number;
  /** Why it failed, where there is no run that says so. */
  reason: string;
  /** What users wrote beside it. */
  remark: Remark;
  /** Which repeat, from 1; 0 outside evaluations. */
  repeat: number;
  /** The run; null where the submission ended before it had one. */
  run: number | null;
  /** When it started. */
  started_unix_ms: number;
  /** A run's state, or a submission's: `completed`, `failed`, `interrupted`, `cancelled`, `running`. */
  state: string;
  /** The submission that it came from. */
  submission: number | null;
  /** Whether its result is VALID; null until judged. */
  valid: boolean | null;
}

/** What a machine is, as far as its load and results depend on it. What is not known is empty or zero. */
export interface Host {
  /** Processors that Tidemark may use. */
  cores: number;
  /** Processor model. */
  cpu: string;
  /** Its host name. */
  host: string;
  /** Operating system and kernel release. */
  kernel: string;
  /** Memory, bytes. */
  memory_bytes: number;
}

/** The controller, and the caller's role. */
export interface Info {
  /** SHA-256 of its certificate, hexadecimal, by which drivers know it; null without TLS. */
  fingerprint: string | null;
  /** Largest document accepted, bytes. */
  largest_document: number;
  /** The controller's name. */
  name: string;
  /** The caller's role. */
  role: Role;
  /** When the controller started. */
  started_unix_ms: number;
  /** Problems that an operator should know of: `cannot write to the result store: disk full`. */
  troubles: string[];
  /** Name of the caller's token; empty if the controller needs none. */
  user: string;
  /** Tidemark's version. */
  version: string;
}

/** An event of the stream: the SSE field `event` is the variant's name, `id` counts up, `data` is the content as JSON. */
export type Live =
  | {
      /** The overview changed; at most once a second. */
      overview: Overview;
    }
  | {
      /** A second of a work is complete. */
      second: LiveSecond;
    }
  | {
      /** A stage started, progressed or ended: all stages. */
      stages: LiveStage[];
    }
  | {
      /** Nodes were sampled. */
      nodes: LiveNode[];
    }
  | {
      /** A warning for the user. */
      trouble: string;
    }
  | {
      /** Something happened that charts mark. */
      mark: LiveMark;
    }
  | {
      /** An evaluation came further. */
      board: LiveBoard;
    }
  | {
      /** The submission ended. */
      ended: Submission;
    }
  | {
      /** The reader was too slow and missed events: fetch `live` again. */
      missed: number;
    };

/** An evaluation in progress: arms x loads x levels. */
export interface LiveBoard {
  /** The arms, the baseline first. */
  arms: string[];
  /** The cells that were measured so far. */
  cells: LiveCell[];
  /** Runs that are done. */
  done: number;
  /** Its number in the store, once there is one. */
  evaluation: number | null;
  /** The loads. */
  loads: LiveLoad[];
  now: LivePlace | null;
  /** Runs in all; null while a search decides as it goes. */
  of: number | null;
  /** What happens between runs: `setting up disk`; or empty. */
  phase: string;
  /** How often each cell is measured, at most. */
  repeats: number;
}

/** A cell of an evaluation as far as it is measured. The numbers are those of its report. */
export interface LiveCell {
  /** The arm. */
  arm: string;
  /** Operations that failed. */
  failed: number;
  /** The level: `workers 8`, or empty. */
  level: string;
  /** The load. */
  load: string;
  /** Whether it meets the service level; null without one, or where that cannot be told. */
  meets: boolean | null;
  /** `INVALID` or `overloaded`, or empty. */
  objection: string;
  /** Ends of its interval. */
  p99_interval_us: [number, number] | null;
  /** 99th percentile of the response time: the mean of its repeats, microseconds; null where it is not known. */
  p99_us: number | null;
  /** Its runs, in the order of repeats. */
  runs: number[];
  /** What of the load, where several things are measured; or empty. */
  subject: string;
  /** Operations per second: the mean of its repeats. */
  throughput: number;
  /** Ends of the 95 % confidence interval of that mean; null with a single repeat. */
  throughput_interval: [number, number] | null;
}

/** A load of an evaluation. */
export interface LiveLoad {
  /** Its levels as the document lists them: `workers 8`; none of a search. */
  levels: string[];
  /** Its name. */
  name: string;
  /** Whether a search finds its levels. */
  searched: boolean;
}

/** Something that happened at a moment of a live run. */
export interface LiveMark {
  /** Which driver, or empty. */
  driver: string;
  /** What. */
  kind: LiveMarkKind;
  /** The same in words: `driver-2 is silent`. */
  text: string;
  /** When. */
  unix_ms: number;
}

/** What a mark of a live run is about. */
export type LiveMarkKind = 'driver_silent' | 'driver_back' | 'driver_lost' | 'failures' | 'cancelled';

/** A node in one second. */
export type LiveNode = Utilization & {
  /** Whether it generates load. */
  generates: boolean;
  /** Its name. */
  name: string;
  /** When. */
  unix_ms: number;
};

/** One operation in one second. Latencies are response times, microseconds. */
export interface LiveOperation {
  /** Bytes of the successes. */
  bytes: number;
  /** Failures. */
  failed: number;
  /** Largest. */
  max_us: number;
  /** Mean. */
  mean_us: number;
  /** Successes. */
  ok: number;
  /** Median. */
  p50_us: number;
  /** 95th percentile. */
  p95_us: number;
  /** 99th percentile. */
  p99_us: number;
}

/** The place of a run in an evaluation. */
export interface LivePlace {
  /** The arm. */
  arm: string;
  /** The level: `workers 8`, or empty. */
  level: string;
  /** The load. */
  load: string;
  /** Which repeat, from 1. */
  repeat: number;
}

/** Live data of a run, for a page that opens now. */
export interface LiveRun {
  board: LiveBoard | null;
  /** Number of the last event included: continue with later ones. */
  last_event: number;
  /** What happened when: drivers that fell silent, failures, a cancellation; in order. */
  marks: LiveMark[];
  /** Recent samples of the nodes. */
  nodes: LiveNode[];
  /** Its run, once there is one. */
  run: number | null;
  /** Latest seconds of all works; at most 600 per work and 3,600 in all. */
  seconds: LiveSecond[];
  /** Its stages. */
  stages: LiveStage[];
  /** The submission. */
  submission: number;
  /** Warnings for the user, newest last. */
  troubles: string[];
}

/** One second of a work. */
export interface LiveSecond {
  /** Operations due but not sent at its end. */
  backlog: number;
  /** CPU utilization of the generator threads, 0 to 1. */
  busy: number;
  /** Each driver's share. */
  drivers: LiveShare[];
  /** Operations in flight at its end. */
  in_flight: number;
  /** Which second since the work's start. */
  index: number;
  /** Drivers that are silent: what they did in this second is not in it. The same second comes again when it is complete. */
  missing: string[];
  /** One entry per operation of the work. */
  operations: LiveOperation[];
  /** Which stage, from 0. */
  stage: number;
  /** When it was reported. */
  unix_ms: number;
  /** Operations that ended outside the window. */
  unmeasured: number;
  /** Which work of it, from 0. */
  work: number;
}

/** One driver's second. */
export interface LiveShare {
  /** CPU utilization of the generator threads, 0 to 1. */
  busy: number;
  /** Bytes of the successes. */
  bytes: number;
  /** Its name. */
  driver: string;
  /** Failures. */
  failed: number;
  /** Successes. */
  ok: number;
  /** Median of the response times, microseconds. */
  p50_us: number;
  /** 99th percentile of the response times, microseconds. */
  p99_us: number;
}

/** A stage of a live run. */
export interface LiveStage {
  /** When it ended. */
  ended_unix_ms: number | null;
  /** Expected duration, milliseconds, if known. */
  expected_ms: number | null;
  /** Total number of operations, if fixed. */
  expected_operations: number | null;
  /** `s1-init`. */
  id: string;
  /** Its name. */
  name: string;
  /** Operations done so far. */
  operations: number;
  /** Why it failed, or empty. */
  reason: string;
  /** When it started. */
  started_unix_ms: number | null;
  /** Its state. */
  state: RunState;
  /** Its works. */
  works: LiveWork[];
}

/** A work of a stage. */
export interface LiveWork {
  /** Its name. */
  name: string;
  /** Labels of its operations. */
  operations: string[];
  /** When it ends; null where that depends on the load. */
  window_end_ms: number | null;
  /** When what is measured begins, milliseconds since its start; null where that depends on the load. */
  window_start_ms: number | null;
  /** Its workers. */
  workers: number;
}

/** What somebody logs in with. */
export type Login =
  | {
      /** A token. */
      token: string;
    }
  | {
      /** The code of a login address, which is good once. */
      code: string;
    };

/** A time without a single success. */
export interface LongestGap {
  /** When it began: the last success before it, or the work's start, since the work's start. */
  from_ns: number;
  /** When it ended: the first success after it, or the end of the load. */
  to_ns: number;
}

/** The loss of a pod, or of a node, until it is there again. */
export interface Loss {
  /** What was lost and how, and what happened then, in order. The first of them is the loss. */
  phases: Happening[];
  /** When as many were there again as were lost, if they ever were. */
  returned_ns: number | null;
  /** What the load saw. */
  service: Service;
}

/** How a driver was lost. */
export interface Lost {
  /** When it was given up. */
  at_ns: number;
  /** Why, as a clause: `it said nothing for 10 s`. */
  reason: string;
}

/** One operation of one run: a row of the performance matrix. Times are microseconds. */
export interface MatrixRow {
  /** Its arm there; empty outside evaluations, as is its level. */
  arm: string;
  /** Bytes per second. */
  bandwidth: number;
  /** Bytes moved. */
  bytes: number;
  /** Its selectors and settings as the document wrote them. */
  config: string;
  /** Operations of each worker in flight at once. */
  depth: number;
  /** Drivers that shared it; 1 without drivers. */
  drivers: number;
  /** The newest evaluation that the run belongs to. */
  evaluation: number | null;
  /** Operations that failed. */
  failed: number;
  /** What the work is for: `normal`, `prepare`, ... */
  kind: string;
  /** Its level there: `workers 64`. */
  level: string;
  /** Mean response time. */
  mean_us: number;
  /** Whether the work measures, rather than to make ready or to clean up. */
  measures: boolean;
  /** Its name. */
  name: string;
  /** Operations that succeeded. */
  ok: number;
  /** The operation's name. */
  operation: string;
  /** Percentiles of the response time, at 50, 60, 80, 90, 95, 99, 99.9, 99.99 and 100 %. */
  percentiles_us: number[];
  /** Which repeat; 0 outside evaluations. */
  repeat: number;
  /** The run. */
  run: number;
  /** What it is counted as: `read`, `write`, `delete`, `list`, ... */
  sample: string;
  /** `s3-main`. */
  stage: string;
  /** When it started. */
  started_unix_ms: number;
  /** The run's state. */
  state: RunState;
  /** Share of the operations that succeeded, 0 to 1. */
  success_ratio: number;
  /** Operations per second. */
  throughput: number;
  /** Whether the run's result is VALID. */
  valid: boolean | null;
  /** Its share of the mix, percent. */
  weight: number;
  /** The work's name. */
  work: string;
  /** Workers of the work. */
  workers: number;
}

/** A run's place in an evaluation. */
export interface Member {
  /** The arm's name. */
  arm: string;
  /** The evaluation's number. */
  evaluation: number;
  /** Of all that makes the cell what it is: when it changes, the cell is measured again. */
  fingerprint: string;
  /** The level. */
  level: Axis[];
  /** The load's name. */
  load: string;
  /** Which repeat, from 1. */
  repeat: number;
  /** Which of all runs of the evaluation it was, in the order of time, from 1. */
  turn: number;
}

/** The unit of a metric. */
export type MetricUnit = 'operations_per_second' | 'microseconds';

/** A remark on the document: behaviour that its author may not expect. */
export interface Note {
  /** What happens and why, in one or two sentences. */
  text: string;
  /** A short stable name, e.g. `kib-units`. */
  topic: string;
}

/** Differences of counters of BlueStore, summed over the OSDs of a cluster (`ceph tell osd.* perf dump bluestore`). */
export interface OsdUse {
  /** Bytes that they read from their own caches. */
  cache_read_bytes: number;
  /** Copies that the pool of the volumes keeps of everything; 0 where it keeps no copies (erasure coding). */
  copies: number;
  /** Bytes that they read from their devices. */
  device_read_bytes: number;
  /** OSDs that were asked. */
  osds: number;
  /** Bytes that they were given to write, all copies together. */
  written_bytes: number;
}

/** The overview page. */
export interface Overview {
  /** Running submissions. */
  active: Submission[];
  /** Drivers that are connected or were recently, by name. */
  drivers: Driver[];
  /** Queued submissions, in starting order. */
  queue: Submission[];
  /** Submissions that ended recently, newest first; at most 20. */
  recent: Submission[];
  /** Problems that an operator should know of. */
  troubles: string[];
}

/** What a process and the programs that it ran moved between storage and memory (`/proc/PID/io`). Writes count when they go to the page cache, reads when they come from a device. */
export interface OwnIo {
  /** Bytes that it had read from devices. */
  read_bytes: number;
  /** Bytes that it wrote to files and devices. */
  written_bytes: number;
}

/** Whose token it is. */
export interface Owner {
  /** Its role. */
  role: Role;
  /** Name of the token. */
  user: string;
}

/** The part that something has in a run. */
export type Part = 'driver' | 'target' | 'node';

/** An error or warning in a document. */
export interface Problem {
  /** Column, from 1. */
  column: number;
  /** True for a warning that holds for every document of its format, whatever this one says. */
  general: boolean;
  /** How to fix it, or empty. */
  help: string;
  /** Length of the marked text, characters. */
  length: number;
  /** Line, from 1; 0 if it concerns the whole document. */
  line: number;
  /** What is wrong. */
  message: string;
  /** True for a warning: the document still runs. */
  warning: boolean;
}

/** What was done around the load so that its numbers are evidence, and what the devices counted meanwhile. */
export interface Proof {
  cache: Cache | null;
  /** What the devices under the volumes counted from the stage's start to its end, whoever caused it. */
  devices: DeviceUse[];
  /** Whether reads and writes bypassed the page cache. */
  direct: boolean;
  /** The same of each driver's process, where several have volumes. */
  drivers: DriverIo[];
  /** Figures that the works' workloads declare. */
  figures: DeclaredFigure[];
  osds: OsdUse | null;
  own: OwnIo | null;
  /** What was done before the load, in words: `page cache of 1 volume dropped`. */
  setup: string[];
  /** Tables that were made, and queries that ran on them: an entry for each work. */
  tables: TablesUse[];
  /** What could not be checked, and why: whole sentences. */
  unchecked: string[];
}

/** Everything needed to say what was run, and to run it again. */
export type Provenance = Host & {
  /** The command line, secrets redacted. */
  command: string;
  /** The document, secrets redacted. */
  document: string;
  /** `COSBench XML` or `Tidemark YAML`. */
  format: string;
  /** The document's path as given, or empty for a one-liner. */
  path: string;
  /** The seed that all random choices came from. */
  seed: number;
  /** What the load ran against, one line per distinct target: kind, endpoints, server software if known. */
  targets: string[];
  /** Tidemark's version. */
  tidemark: string;
};

/** One execution of a query. */
export interface QueryUse {
  /** What its answer was compared with. */
  answer: Answer;
  /** When it began, since the work's start. */
  began_ns: number;
  /** Bytes that it read from storage, of an engine that says so: its own word, which nobody has checked. */
  engine_read_bytes: number | null;
  /** Time of these reads, summed over all threads of the engine, of an engine that says so. */
  engine_read_ns: number | null;
  /** Time from then on to its end, of an engine that says so. */
  execution_ns: number | null;
  fault: Fault | null;
  /** Time to its first row; `None` if it had none, or that is not known. */
  first_row_ns: number | null;
  /** The pass of the stream, from 1. */
  pass: number;
  /** Time that its plan took, of an engine that says so. */
  planning_ns: number | null;
  /** Its name: `q18`. */
  query: string;
  /** Time that it was queued, of an engine that says so. */
  queued_ns: number | null;
  /** Rows of its answer. */
  rows: number;
  storage: StorageUse | null;
  /** The stream that ran it, from 1. */
  stream: number;
  /** How long it took, to its last row. */
  took_ns: number;
}

/** What users wrote beside a run. */
export interface Remark {
  /** Free text, at most 4,000 characters. */
  note: string;
  /** Words to find it by: at most 20 of 40 characters, without commas. */
  tags: string[];
}

/** Numbers that another tool has worked out of samples that it did not keep whole: they count. Every field may be missing. */
export interface Reported {
  /** Bytes per second. */
  bandwidth: number | null;
  /** Mean response time, nanoseconds. */
  mean_ns: number | null;
  /** Share of the operations, 0 to 1, and the response time that they do not exceed, nanoseconds; ascending. */
  percentiles: [number, number][];
  /** Operations per second. */
  throughput: number | null;
}

/** The role of a token. */
export type Role = 'viewer' | 'operator' | 'driver';

/** A process that generates load, commanded by a controller. */
export type RunDriver = Host & {
  /** Half of the shortest round trip by which the offset was measured, nanoseconds: the most that it can be wrong. */
  clock_error_ns: number;
  /** How far its clock was ahead of the controller's when the run began, nanoseconds; both are monotonic clocks with origins of their own, so only changes of it mean something. */
  clock_offset_ns: number;
  lost: Lost | null;
  /** Its name, unique among the drivers of its controller. */
  name: string;
};

export interface RunEndpoint {
  bytes: number;
  /** Successes due before the window that ended in it: in the throughput, not in the latencies. */
  early: number;
  endpoint: string;
  failed: number;
  failed_by_second: number[];
  /** Failures by class. */
  faults: Record<string, number>;
  kind: EndpointKind;
  /** Successes after the end of the window: in the latencies, not in the throughput. */
  late: number;
  ok: number;
  /** Successes in each second since the work's start, as far as there were any. */
  ok_by_second: number[];
  response: WholeDistribution | null;
  throughput_per_s: number;
}

/** A figure that users know a workload by: a rate, a share or a time. */
export interface RunFigure {
  about: string;
  /** What the time may be at most; null where it has no limit. */
  limit_ns: number | null;
  name: string;
  /** Null where it is no rate. */
  per_minute: number | null;
  /** A number without a unit; null where it has one. */
  score: number | null;
  /** Of the most that can be; null where it is no share. */
  share: number | null;
  /** Null where it is no time. */
  time_ns: number | null;
  work: string;
}

/** A run in a few numbers, all data operations together: the judge's. */
export interface RunFigures {
  /** Bytes per second. */
  bandwidth: number;
  /** What was asked for: `70 % read / 30 % write, 32 workers`. */
  load: string;
  /** Median response time, microseconds; null where it is not known. */
  p50_us: number | null;
  /** 99th percentile. */
  p99_us: number | null;
  /** Operations per second over the time of the run, in at most 48 steps. */
  shape: number[];
  /** Operations per second. */
  throughput: number;
}

/** One node, from the run's start to its end. */
export interface RunNode {
  /** When each sample was taken, nanoseconds since the run's start. A rate is over the time since the sample before. */
  at_ns: number[];
  /** What it is: kernel, processors, memory, speeds of links, names of devices; name and value. */
  facts: [string, string][];
  /** What could not be observed, and why: whole sentences. */
  gaps: string[];
  /** Whether it generated the load. */
  generates: boolean;
  /** Its host name, or the name that the document gives it. */
  name: string;
  /** What was sampled. */
  series: Series[];
  /** Where its numbers came from: `local`, the address of a `tidemark observe`, or what Ceph was asked through. */
  source: string;
}

export interface RunOperation {
  bandwidth_bytes_per_s: number;
  bytes: number;
  config: string;
  /** Successes due before the window that ended in it: in the throughput, not in the latencies. */
  early: number;
  early_bytes: number;
  failed: number;
  failure: WholeDistribution | null;
  /** Failures by class. */
  faults: Record<string, number>;
  first_byte: WholeDistribution | null;
  kind: string;
  label: string;
  lag: WholeDistribution | null;
  /** Successes after the end of the window: in the latencies, not in the throughput. */
  late: number;
  late_bytes: number;
  ok: number;
  /** Bytes of successes that count in neither; all that was moved is `bytes`, `early_bytes` and these. */
  outside_bytes: number;
  own_lag: WholeDistribution | null;
  /** Of these, successes whose content is in its place and Tidemark's, though nobody knew which write it must be of. */
  placed: number;
  response: WholeDistribution | null;
  retries: number;
  said: Reported | null;
  sample: string;
  service: WholeDistribution | null;
  /** Null when there were no operations. */
  success_ratio: number | null;
  throughput_per_s: number;
  /** Successes whose content was to be verified and could not be, by reason. */
  unchecked: Record<string, number>;
  /** Successes whose content was compared with what had been written, and was right. */
  verified: number;
  /** Whether the document asks for the content of its reads to be verified. */
  verifies: boolean;
  weight_percent: number;
}

/** A run and what was found about it. */
export interface RunRecord {
  /** The findings that are not checks passed, by their causes, the gravest first. */
  causes: Group[];
  description: string;
  /** The drivers that put the load on; none where the process that keeps the record did it itself. */
  drivers: RunDriver[];
  elapsed_ns: number;
  findings: Finding[];
  id: number;
  /** Why it is not valid. */
  invalid_reasons: string[];
  /** The short stable names of those reasons, in the same order. */
  invalid_rules: string[];
  /** The pods and nodes that were lost while it went on, with what happened to them and what the load saw of it. */
  losses: Loss[];
  member: Member | null;
  name: string;
  /** What the nodes did meanwhile. */
  nodes: RunNode[];
  notes: Note[];
  provenance: Provenance;
  schema: number;
  stages: RunStage[];
  /** The same in RFC 3339, UTC. */
  started: string;
  started_unix_ns: number;
  state: RunState;
  /** Everything that it measured in a few numbers. */
  totals: RunTotals;
  valid: boolean;
  /** The run in a few sentences: what it achieved, what went wrong, whether its numbers hold. */
  verdict: string[];
}

/** A run in a list. */
export interface RunRow {
  /** How long it took, milliseconds. */
  elapsed_ms: number;
  /** The evaluation it belongs to. */
  evaluation: number | null;
  /** Failures among them. */
  failed: number;
  /** The result in one line. */
  headline: string;
  /** Its number. */
  id: number;
  /** Its name. */
  name: string;
  /** Measured operations. */
  operations: number;
  /** When it started. */
  started_unix_ms: number;
  /** Its state. */
  state: RunState;
  /** The submission it came from. */
  submission: number | null;
  /** Whether its result is VALID; null until judged. */
  valid: boolean | null;
}

/** One second of a work, small enough to keep for every second of a run. */
export interface RunSecond {
  /** Due and not yet sent at its end. */
  backlog: number;
  /** Share of the generator threads' time that they spent on a processor, 0 to 1. */
  busy: number;
  /** Operations in flight at its end. */
  in_flight: number;
  /** Which second since the work's start. */
  index: number;
  /** Age of the oldest of them, nanoseconds. */
  oldest_in_flight_ns: number;
  /** One entry per operation of the work. */
  operations: SecondOfOperation[];
  /** For how long a generator thread stood still that was due to run, at most, nanoseconds. */
  stalled_ns: number;
  /** Operations that ended and were not measured (ramp-up, ramp-down). */
  unmeasured: number;
}

/** What one driver did of one work. */
export interface RunShare {
  /** Bytes that the successful ones moved. */
  bytes: number;
  /** Whether all that it did arrived here. If not, the driver was lost, and what it did after its last second is missing. */
  complete: boolean;
  /** Which driver of the run. */
  driver: number;
  /** Measured operations that failed. */
  failed: number;
  /** When its first operation was sent, measured or not, on the controller's clock. */
  first_sent_ns: number | null;
  /** Its first worker within the work. */
  first_worker: number;
  /** Measured operations that succeeded. */
  ok: number;
  /** Bytes that its reads moved, in the window and outside. */
  read_bytes: number;
  /** Second by second. */
  series: ShareSecond[];
  /** Generator threads. */
  threads: number;
  /** Which work of the stage. */
  work: number;
  /** How many workers it had. */
  workers: number;
  /** Bytes that its writes moved likewise. */
  written_bytes: number;
}

export interface RunStage {
  cell: Cell | null;
  ended_ns: number;
  /** Figures that users know its workloads by. */
  figures: RunFigure[];
  id: string;
  name: string;
  proof: Proof | null;
  reason: string;
  /** What each driver did, by its place in `drivers` and the work's in `works`; none where there were no drivers. */
  shares: RunShare[];
  started_ns: number;
  state: RunState;
  /** What nodes did under its queries: of those that ran alone for the time of a few samples. */
  under_queries: RunUnderQuery[];
  works: RunWork[];
}

/** How a run or a stage ended. */
export type RunState = 'waiting' | 'running' | 'completed' | 'failed' | 'interrupted';

/** What a run measured: all data operations together, or the best cell of a sweep. */
export interface RunTotals {
  bandwidth_bytes_per_s: number;
  /** The cell of a sweep that rates and response times are of; null where they are of all operations. */
  cell: string | null;
  failed: number;
  /** What was asked for: `70 % read / 30 % write, 32 workers`. */
  load: string;
  operations: number;
  /** Null where response times are not known. */
  p50_ns: number | null;
  p99_ns: number | null;
  throughput_per_s: number;
}

/** What nodes did under a query: means over all of its executions that ran alone for long enough, weighted by their time. */
export interface RunUnderQuery {
  /** The share of their processors that nodes used; null where that is not known. */
  busy_ratio: number | null;
  /** What their disks read: those that lie on no other. */
  disk_read_bytes_per_s: number | null;
  /** What they wrote. */
  disk_written_bytes_per_s: number | null;
  /** Bytes that an execution read, as Tidemark's own client counted them or else as its engine says; null where neither does. */
  engine_read_bytes: number | null;
  /** How many executions. */
  executions: number;
  gateways: Gateways | null;
  /** Its name. */
  query: string;
  /** How long each took, on average. */
  took_ns: number;
  /** Its work. */
  work: string;
}

export interface RunWork {
  allowed_failures_per_million: number;
  /** Connections that the workers share; null where each has its own. */
  connections: number | null;
  /** Operations of each worker in flight at once. */
  depth: number;
  /** What was done at each of the target's endpoints or instances; none where there is only one. */
  endpoints: RunEndpoint[];
  examples: Example[];
  /** Jain's index over their throughput: 1 where all had the same; null where there is only one. */
  fairness: number | null;
  given_up: string;
  kind: string;
  last_done_ns: number;
  name: string;
  /** Null in a closed loop. */
  offered_per_s: number | null;
  operations: RunOperation[];
  series: RunSecond[];
  settling: Settling | null;
  silence: LongestGap | null;
  silence_ns: number;
  /** Whether no storage is behind it: its numbers are the load generator's own. */
  simulated: boolean;
  started_ns: number;
  think: Think | null;
  threads: number;
  undone: number;
  /** Planned operations of which nothing is known: a lost driver's. */
  unknown: number;
  unsent: number;
  window_end_ns: number;
  window_rounds: Settling | null;
  window_start_ns: number;
  workers: number;
  workers_counts: WorkerCount[];
}

/** One operation in one second. Latencies are response times in nanoseconds. */
export interface SecondOfOperation {
  /** Bytes moved by the successes. */
  bytes: number;
  /** Failures. */
  failed: number;
  /** Largest. */
  max_ns: number;
  /** Mean. */
  mean_ns: number;
  /** Successes. */
  ok: number;
  /** Median. */
  p50_ns: number;
  /** 95th percentile. */
  p95_ns: number;
  /** 99th percentile. */
  p99_ns: number;
  /** 99th percentile of the service time. */
  service_p99_ns: number;
}

/** One thing that was sampled. */
export interface Series {
  /** What kind of thing it is about. */
  kind: SeriesKind;
  /** What is measured, one of the names in the table of `tidemark-observe`: `busy`, `write_ops`. */
  metric: string;
  /** Which one: `all`, `cpu0`, `vda`, `lo`, `ceph-osd.1`, a cgroup's path. */
  subject: string;
  /** A value for every sample of the node; NaN where there is none. */
  values: (number | null)[];
}

/** What a series is about. */
export type SeriesKind = 'cpu' | 'pressure' | 'memory' | 'disk' | 'network' | 'process' | 'cgroup' | 'ceph';

/** What the load saw of a loss. Times are since the run's start. */
export type Service =
  | {
      kind: 'unmeasured';
    }
  | {
      kind: 'sparse';
    }
  | {
      kind: 'kept';
      /** The fewest successes of a second meanwhile. */
      least: number;
      /** The longest time without one, if that of the whole load was meanwhile. */
      longest_ns?: number | null;
      /** The median of the seconds of the load. */
      usual: number;
    }
  | {
      /** When the load ended. */
      end_ns: number;
      /** The exact times, where the load has recorded them: its longest time without success is this one. */
      exact_ns?: [number, number] | null;
      /** When the first success after them was, at the earliest: the beginning of its second; `None`: there was none. */
      first_ns?: number | null;
      kind: 'gone';
      /** When the last success before them was, at the latest: the end of its second. */
      last_ns: number;
    };

/** A session, which stands for the token of whoever logged in. */
export interface Session {
  /** The session's key: it is sent as a token is, `Authorization: Bearer KEY`. */
  key: string;
  /** Who logged in. */
  owner: Owner;
}

/** Rounds of a load, before its window or in it, until throughput was steady by the SNIA's rule (SSS PTS 2.0.2, 2.1.24): over five rounds the range is at most 20 % of the average and the best line's rise at most 10 %. */
export interface Settling {
  /** Length of a round, nanoseconds. */
  round_ns: number;
  /** Successful operations per second of every round. */
  rounds: number[];
  /** Whether the last five are steady; if not, the rounds or the time that the document allows were used up. */
  steady: boolean;
}

/** How grave a finding is. */
export type Severity = 'good' | 'note' | 'warning' | 'critical';

/** One second of a driver's share of a work, over all operations. */
export interface ShareSecond {
  /** Share of the generator threads' time that they spent on a processor, 0 to 1. */
  busy: number;
  /** Bytes moved by the successes. */
  bytes: number;
  /** Failures. */
  failed: number;
  /** Which second since the work's start. */
  index: number;
  /** Successes. */
  ok: number;
  /** Median of the response times, nanoseconds. */
  p50_ns: number;
  /** 99th percentile of the response times, nanoseconds. */
  p99_ns: number;
}

/** Reads of a size. */
export interface SizeCount {
  /** How many. */
  reads: number;
  /** The most bytes of one, a power of two. */
  up_to_bytes: number;
}

/** A run that nobody waits for any more, and that has not ended on a driver yet: it is given a few seconds, and its process is killed then. */
export interface StillEnding {
  /** For how long, milliseconds. */
  ms: number;
  /** The submission whose run that is, where it is known. */
  submission: number | null;
}

/** Requests for the files of tables. */
export interface StorageUse {
  /** Time with at least one request in flight, nanoseconds. */
  busy_ns: number;
  /** Requests that failed. */
  failed: number;
  /** Most requests in flight at once. */
  most_in_flight: number;
  /** Bytes of the column chunks that the query needs, each once; `None` where nobody knows. */
  needed_bytes: number | null;
  /** Bytes that they asked for. */
  read_bytes: number;
  /** Those that read content. */
  reads: number;
  /** Requests, of any kind. */
  requests: number;
  /** Reads by size: those of up to so many bytes, and of more than the entry before. */
  sizes: SizeCount[];
  /** Time of all requests, summed, nanoseconds. */
  waited_ns: number;
}

/** A submitted document and its outcome. */
export interface Submission {
  /** Name of the submitter's token. */
  by: string;
  /** The drivers it runs on, or those it asks for by name. */
  drivers: string[];
  /** When it ended. */
  ended_unix_ms: number | null;
  /** Number of its stored evaluation, once there is one. */
  evaluation: number | null;
  /** Expected duration, milliseconds, if known. */
  expected_ms: number | null;
  /** `COSBench XML`, `Tidemark YAML`, `fio job file`, `Tidemark evaluation`. */
  format: string;
  /** The result in one line, or empty. */
  headline: string;
  /** Its number: submission w7 is 7. */
  id: number;
  /** Name of the document. */
  name: string;
  /** Its operations, for lists: `read, write`. */
  operations: string;
  /** Higher priorities start first. */
  priority: number;
  /** Progress, 0 to 1, if known. */
  progress: number | null;
  /** While it runs: successful operations in each of the latest seconds, at most 90, newest last. */
  rates: number[];
  /** Why it is waiting, failed or was interrupted, or empty. */
  reason: string;
  /** Number of its stored run, once there is one; of an evaluation, the latest. */
  run: number | null;
  /** The running stage, or empty. */
  stage: string;
  /** When it started. */
  started_unix_ms: number | null;
  /** Its state. */
  state: SubmissionState;
  /** When it was submitted. */
  submitted_unix_ms: number;
  /** Whether its result is VALID, once judged. */
  valid: boolean | null;
}

/** The state of a submission. */
export type SubmissionState = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled' | 'interrupted';

/** A document to run. */
export interface Submit {
  /** The document: COSBench XML, Tidemark YAML or a fio job file. */
  document: string;
  /** Number of drivers to run on, any that are free; none: the document decides. */
  driver_count?: number | null;
  /** Drivers to run on, by name; none: the document decides. */
  drivers?: string[];
  /** The submission that the document was made from: in lines that are unchanged, values hidden there (`***`) are put back. */
  from?: number | null;
  /** Higher priorities start first; -100 to 100. */
  priority?: number;
  /** A seed that replaces the document's. */
  seed?: number | null;
  /** Skip the check that the targets respond. */
  skip_preflight?: boolean;
}

/** A table that a work made, or found made. */
export interface TableMade {
  /** Bytes of its files. */
  bytes: number;
  /** Rows that the set's definition gives it at this scale; `None` where it gives no exact number. */
  expected_rows: number | null;
  /** How many files. */
  files: number;
  /** Files that were there already, and were kept. */
  kept_files: number;
  /** Its name. */
  name: string;
  /** Rows that its files hold, as they were read back or as the engine counts them. */
  rows: number;
}

/** Tables that a work made. */
export interface TablesMade {
  /** Time that they spent encoding them, summed. */
  encoding_ns: number;
  /** Time that its workers spent generating rows, summed, nanoseconds. */
  generating_ns: number;
  /** How they were written, in a few words: `Parquet, zstd(1), row groups of 1,048,576 rows, files of up to 256 MiB`. */
  layout: string;
  /** Time that they waited for storage, summed. */
  storing_ns: number;
  /** Each of them. */
  tables: TableMade[];
}

/** What a work did with the tables of a set: those that it made, and the queries that it ran. */
export interface TablesUse {
  /** What may have kept data in memory, and whether it could have held all of it. */
  caches: CacheLayer[];
  /** Bytes of the tables' files; `None` where nobody knows. */
  data_bytes: number | null;
  /** The cache state that the document declares: `cold`, `warm`; empty where it declares none. */
  declared_cache: string;
  /** What runs the queries, with its version: `DataFusion 55.2.0`. */
  engine: string;
  made: TablesMade | null;
  /** Processor time that the load generator spent outside queries, nanoseconds; `None` where it was not measured. */
  own_cpu_ns: number | null;
  /** The same without its version; empty where it was not recorded. */
  product: string;
  /** Executions of queries, in the order in which they ended. */
  queries: QueryUse[];
  /** Its scale factor, as the document writes it: `0.1`. */
  scale: string;
  /** The same in thousandths; 0 where it was not recorded. */
  scale_milli: number;
  /** Which set: `tpch`. */
  set: string;
  /** Where the tables are: `S3 at http://10.0.0.1:8000, bucket lake, prefix tpch`. */
  storage: string;
  /** Executions that are not listed, because there were too many. */
  unlisted: number;
  /** The work's name. */
  work: string;
}

/** A kind of target, for forms. */
export interface TargetForm {
  /** Whether it requires no settings: `target: embedded`. */
  bare: boolean;
  /** Its kind and keys. */
  form: Form;
  /** What its engine puts load on: `objects`, `volumes`. */
  subject: string;
  /** The works that it can have, each under the key that it stands under, with those of its keys that take single values. */
  works: Form[];
}

/** A distribution of pauses. */
export type Think =
  | {
      /** Always the same. */
      constant: {
        /** Nanoseconds; 0: no pause. */
        ns: number;
      };
    }
  | {
      /** All lengths between two bounds are equally likely. */
      uniform: {
        /** The longest. */
        high_ns: number;
        /** The shortest, nanoseconds. */
        low_ns: number;
      };
    }
  | {
      /** Exponential: many short pauses and a few long ones, as between the requests of independent users. */
      exponential: {
        /** The mean, nanoseconds. */
        mean_ns: number;
      };
    }
  | {
      /** As a person at a terminal: each kind of operation has a time to key it in and a time to think about what came. */
      terminal: {
        /** The mean of both together over the mix, nanoseconds. */
        mean_ns: number;
      };
    };

/** Lets a browser fetch one address, once and soon, without a header. */
export interface Ticket {
  /** The address with its ticket. */
  address: string;
}

/** What a ticket is to be good for. */
export interface TicketFor {
  /** The address without scheme, host and ticket: `/api/v1/runs/12/report?format=csv`. */
  address: string;
}

/** An error reply. */
export interface Trouble {
  /** What happened, and what to do next. */
  message: string;
  /** Errors and warnings in a submitted document, in text order. */
  problems: Problem[];
}

/** How busy a machine is. */
export interface Utilization {
  /** Share of all processors that are busy, 0 to 1. */
  cpu_busy: number;
  /** Memory in use, bytes. */
  memory_used_bytes: number;
  /** Received by all network interfaces but loopback, bytes per second. */
  received_per_s: number;
  /** Sent by them, bytes per second. */
  sent_per_s: number;
}

/** The same with all that was counted. */
export type WholeDistribution = Distribution & {
  /** HdrHistogram V2, base 64. */
  v2: string;
};

/** What one worker did with one operation, over the window. */
export interface WorkerCount {
  /** Bytes of the successes. */
  bytes: number;
  /** Failures. */
  failed: number;
  /** When its first measured operation was sent, since the work's start. */
  first_sent_ns: number;
  /** When its last measured operation ended, since the work's start. */
  last_done_ns: number;
  /** Successes. */
  ok: number;
  /** Which operation of the work. */
  operation: number;
  /** Sum of the successes' response times, nanoseconds. */
  response_ns: number;
  /** The worker's number within the work, from 0. */
  worker: number;
}
