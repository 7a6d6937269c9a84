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

/** A run as messages and the sweeper name it. */
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
