import { publicId } from '../ids.js';

/** The description of a kind of run, by which all code handles every kind. */
interface RunDescription {
  /** The table has the columns of `Run` (db/runs/runTable.ts). */
  table: string;
  /** Column values that only runs have; absent: every row of the table is a run. */
  rows?: Readonly<Record<string, string>>;
  idPrefix: 'run' | 'imp';
  /** The noun in messages such as `there is no … with this id`. */
  noun: string;
  plural: string;
  /** Public names of the two limits: open runs at once, and starts of runs. */
  openPolicy: string;
  startPolicy: string;
  /** The setting that contains the numbers of both limits. */
  limitedAs: 'runs' | 'imports' | 'invoices';
  /** The workflow's type, the prefix of its ids, and the input field with the run's id. */
  workflow: { type: string; idPrefix: string; input: 'runId' | 'importId' };
  /**
   * Absent: a run of this kind cannot be cancelled. `until`: once this time column is set it cannot be cancelled
   * either, for `reason`.
   */
  cancel?: { until?: { column: string; reason: string } };
  /** Columns that only open runs use; they become null when the run ends. */
  emptiedAtEnd?: readonly string[];
}

const DESCRIPTIONS = {
  gap_run: {
    table: 'gap_runs',
    idPrefix: 'run',
    noun: 'run',
    plural: 'gap runs',
    openPolicy: 'open-gap-runs',
    startPolicy: 'gap-runs',
    limitedAs: 'runs',
    workflow: { type: 'gapRun', idPrefix: 'gap', input: 'runId' },
    cancel: {
      until: {
        column: 'published_at',
        reason:
          'the run has published its findings and is drafting claims; it ends by itself, and drafts can be discarded',
      },
    },
  },
  billing_import: {
    table: 'billing_sources',
    // Sources of a sync are not runs: the sync itself is the run.
    rows: { kind: 'file' },
    idPrefix: 'imp',
    noun: 'import',
    plural: 'imports',
    openPolicy: 'open-imports',
    startPolicy: 'imports',
    limitedAs: 'imports',
    workflow: { type: 'billingImport', idPrefix: 'import', input: 'importId' },
  },
  billing_sync: {
    table: 'sync_runs',
    idPrefix: 'run',
    noun: 'sync',
    plural: 'syncs',
    openPolicy: 'open-syncs',
    startPolicy: 'syncs',
    limitedAs: 'runs',
    workflow: { type: 'billingSync', idPrefix: 'sync-run', input: 'runId' },
    emptiedAtEnd: ['waiting_code', 'waiting_message', 'waiting_until'],
  },
  reprice: {
    table: 'reprice_runs',
    idPrefix: 'run',
    noun: 're-pricing',
    plural: 're-pricings',
    openPolicy: 'open-repricings',
    startPolicy: 'repricings',
    limitedAs: 'runs',
    workflow: { type: 'repricing', idPrefix: 'reprice', input: 'runId' },
    cancel: {},
  },
  savings_run: {
    table: 'savings_runs',
    idPrefix: 'run',
    noun: 'savings run',
    plural: 'savings runs',
    openPolicy: 'open-savings-runs',
    startPolicy: 'savings-runs',
    limitedAs: 'runs',
    workflow: { type: 'savingsRun', idPrefix: 'savings', input: 'runId' },
  },
  invoice_run: {
    table: 'invoice_runs',
    idPrefix: 'run',
    noun: 'run of an invoice',
    plural: 'runs of invoices',
    openPolicy: 'open-invoices',
    startPolicy: 'invoices',
    limitedAs: 'invoices',
    workflow: { type: 'invoicePipeline', idPrefix: 'invoice', input: 'runId' },
    cancel: {},
  },
  report: {
    table: 'reports',
    idPrefix: 'run',
    noun: 'run of a report',
    plural: 'reports',
    openPolicy: 'open-reports',
    startPolicy: 'reports',
    limitedAs: 'runs',
    workflow: { type: 'managementReport', idPrefix: 'report', input: 'runId' },
  },
} as const satisfies Record<string, RunDescription>;

type Descriptions = typeof DESCRIPTIONS;
export type RunKind = keyof Descriptions;
/** The kinds of runs that can be cancelled. */
export type CancellableRunKind = {
  [K in RunKind]: Descriptions[K] extends { cancel: object } ? K : never;
}[RunKind];

export const RUN_KINDS = Object.keys(DESCRIPTIONS) as RunKind[];

export function describeRun(kind: RunKind): RunDescription {
  return DESCRIPTIONS[kind];
}

export function isRunKind(word: string): word is RunKind {
  return Object.hasOwn(DESCRIPTIONS, word);
}

export function publicRunId(kind: RunKind, id: string): string {
  return publicId(DESCRIPTIONS[kind].idPrefix, id);
}

export interface RunName {
  orgId: string;
  id: string;
}

/** `gap:<organization>:<run>`: a second start with this id starts nothing. */
export function runWorkflowId(kind: RunKind, { orgId, id }: RunName): string {
  return `${DESCRIPTIONS[kind].workflow.idPrefix}:${orgId}:${id}`;
}

/** The input of a run's workflow: ids only. */
export function runWorkflowInput(kind: RunKind, { orgId, id }: RunName): object {
  return { orgId, [DESCRIPTIONS[kind].workflow.input]: id };
}

/** A run outlasts its request; gap runs, imports and all other polled work share this shape. */
export const RUN_STATUSES = ['queued', 'running', 'succeeded', 'partial', 'failed', 'cancelled'] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

/** The statuses of a run that has ended. */
export const RUN_TERMINAL_STATUSES: ReadonlySet<RunStatus> = new Set([
  'succeeded',
  'partial',
  'failed',
  'cancelled',
]);

const RUN_COMPLETE: ReadonlySet<RunStatus> = new Set(['succeeded', 'partial']);

/** Finished share of the work in whole percent; 100 only if the run processed everything. */
export function percentDone(done: number, total: number, status: RunStatus): number {
  if (RUN_COMPLETE.has(status)) return 100;
  return total === 0 ? 0 : Math.min(99, Math.floor((done * 100) / total));
}

/** Outbox messages to Temporal about a run. */
export type RunMessage = `${RunKind}.start` | `${CancellableRunKind}.cancel`;

export const RUN_MESSAGES: readonly RunMessage[] = RUN_KINDS.flatMap((kind) => [
  runMessage(kind, 'start'),
  ...(describeRun(kind).cancel ? [runMessage(kind, 'cancel')] : []),
]);

export function runMessage(kind: RunKind, verb: 'start' | 'cancel'): RunMessage {
  if (verb === 'cancel' && !describeRun(kind).cancel)
    throw new TypeError(`a ${kind} cannot be asked to stop`);
  return `${kind}.${verb}` as RunMessage;
}

/** Parses a message about a run; undefined for other messages. */
export function readRunMessage(message: string): { kind: RunKind; verb: 'start' | 'cancel' } | undefined {
  const [kind = '', verb] = message.split('.');
  return isRunKind(kind) && (verb === 'start' || verb === 'cancel') ? { kind, verb } : undefined;
}

export const OUTBOX_KINDS = [
  ...RUN_MESSAGES,
  'connection.schedule',
  'report.schedule',
  'webhook.deliver',
  'claim.wake',
  'weights.recompute',
] as const;
export type OutboxKind = (typeof OUTBOX_KINDS)[number];

/** A message to a workflow, written in the transaction of the row that it concerns. */
export interface OutboxMessage {
  orgId: string;
  id: number;
  kind: OutboxKind;
  subjectId: string;
  /** Number of attempts, including this delivery. */
  attempts: number;
}

/** Messages that are delivered in one call to Temporal. */
export type MessageGroup = readonly [OutboxMessage, ...OutboxMessage[]];

/** Messages that wake a workflow; several of them at once have the effect of one. */
const WAKINGS: ReadonlySet<OutboxKind> = new Set(['webhook.deliver', 'claim.wake', 'weights.recompute']);

/** Groups messages that wake the same workflow; every other message is a group by itself. */
export function groupWakings(messages: readonly OutboxMessage[]): MessageGroup[] {
  const groups = new Map<string, [OutboxMessage, ...OutboxMessage[]]>();
  for (const message of messages) {
    const { kind, orgId, subjectId, id } = message;
    const about = kind === 'weights.recompute' ? '' : subjectId;
    const name = WAKINGS.has(kind) ? `${kind} ${orgId} ${about}` : `${orgId} ${id}`;
    const group = groups.get(name);
    if (group) group.push(message);
    else groups.set(name, [message]);
  }
  return [...groups.values()];
}
