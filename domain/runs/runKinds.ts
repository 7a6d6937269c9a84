import { publicId } from '../ids.js';

/** What a kind of run is: every room serves all kinds by this description. */
interface RunDescription {
  /** Its rows have the columns of `Run` (db/runs/runTable.ts). */
  table: string;
  /** Column values that tell runs from other rows of the table; absent: every row is one. */
  rows?: Readonly<Record<string, string>>;
  idPrefix: 'run' | 'imp';
  /** As sentences name it: `there is no … with this id`, and several of them. */
  noun: string;
  plural: string;
  /** The limits by their public names: how many an organization has open at once, and how often it begins one. */
  openPolicy: string;
  startPolicy: string;
  /** Whose numbers the limits have. */
  limitedAs: 'runs' | 'imports' | 'invoices';
  /** The workflow's type, what its ids begin with, and as what its input names the run. */
  workflow: { type: string; idPrefix: string; input: 'runId' | 'importId' };
  /** Absent: it cannot be asked to stop. `until`: the time from whose setting on it cannot any more, and why. */
  cancel?: { until?: { column: string; reason: string } };
  /** Columns that tell of an open run alone. */
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
    // A source that a sync made is no run: the sync is.
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
} as const satisfies Record<string, RunDescription>;

type Descriptions = typeof DESCRIPTIONS;
export type RunKind = keyof Descriptions;
/** The kinds that can be asked to stop. */
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

/** `gap:<organization>:<run>`: a second start is the same start. */
export function runWorkflowId(kind: RunKind, { orgId, id }: RunName): string {
  return `${DESCRIPTIONS[kind].workflow.idPrefix}:${orgId}:${id}`;
}

/** What a run's workflow is told: ids alone. */
export function runWorkflowInput(kind: RunKind, { orgId, id }: RunName): object {
  return { orgId, [DESCRIPTIONS[kind].workflow.input]: id };
}

/** Work that outlives a request, in one shape for gap runs, imports and whatever else is polled. */
export const RUN_STATUSES = ['queued', 'running', 'succeeded', 'partial', 'failed', 'cancelled'] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

/** A run in one of these is over; the others go on. */
export const RUN_TERMINAL_STATUSES: ReadonlySet<RunStatus> = new Set([
  'succeeded',
  'partial',
  'failed',
  'cancelled',
]);

/** Why a run ended without a result, beside the error codes of the work itself. */
export const RUN_ERROR_CODES = [
  'dispatch_failed',
  'run_lost',
  'internal_error',
  'units_failed',
  'follow_up_failed',
  'chunks_failed',
  'connection_ended',
] as const;
export type RunErrorCode = (typeof RUN_ERROR_CODES)[number];

const RUN_COMPLETE: ReadonlySet<RunStatus> = new Set(['succeeded', 'partial']);

/** Share of the work that is done, in whole percent; 100 only of a run that went through all of it. */
export function percentDone(done: number, total: number, status: RunStatus): number {
  if (RUN_COMPLETE.has(status)) return 100;
  return total === 0 ? 0 : Math.min(99, Math.floor((done * 100) / total));
}

/** Messages to the workflow engine about a run. */
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

/** What a message says about a run; undefined for a message about something else. */
export function readRunMessage(message: string): { kind: RunKind; verb: 'start' | 'cancel' } | undefined {
  const [kind = '', verb] = message.split('.');
  return isRunKind(kind) && (verb === 'start' || verb === 'cancel') ? { kind, verb } : undefined;
}

export const OUTBOX_KINDS = [
  ...RUN_MESSAGES,
  'connection.schedule',
  'webhook.deliver',
  'claim.wake',
  'weights.recompute',
] as const;
export type OutboxKind = (typeof OUTBOX_KINDS)[number];

/** Something that a workflow has to be told, written in the transaction of the row that it follows. */
export interface OutboxMessage {
  orgId: string;
  id: number;
  kind: OutboxKind;
  subjectId: string;
  /** This delivery included. */
  attempts: number;
}

/** Messages that one call to the engine delivers. */
export type MessageGroup = readonly [OutboxMessage, ...OutboxMessage[]];

/** Messages that wake a workflow: several at a time are one word to it. */
const WAKINGS: ReadonlySet<OutboxKind> = new Set(['webhook.deliver', 'claim.wake', 'weights.recompute']);

/** Messages that wake one workflow are delivered together, others alone. */
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
