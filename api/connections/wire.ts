import { z } from 'zod';
import type { BillingConnection } from '../../db/queries/billingConnections.js';
import type { SyncRun, SyncRunResult } from '../../db/queries/syncRuns.js';
import { FEEDS } from '../../domain/billing/billedRow.js';
import type { ConnectionSettings } from '../../domain/billing/connectionScope.js';
import { CONNECTION_STATUSES, SYNC_TRIGGERS } from '../../domain/billing/connections.js';
import { publicId } from '../../domain/ids.js';
import { picoFromDecimal, usdNumberFromPico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import { integerParameter } from '../query.js';
import {
  isoOrNull,
  presentProgress,
  presentRunError,
  progressSchema,
  runErrorSchema,
  runStatusSchema,
} from '../runWire.js';

export const CONNECTIONS_PATH = '/api/v1/billing-connections';

/** Parts of an account that one connection may name. */
const PARTS_MAX = 1_000;
const ACCOUNT_CHARS_MAX = 256;

const name = z.string().trim().min(1, 'must not be empty').max(256, 'must have at most 256 characters');
const account = z
  .string()
  .trim()
  .max(ACCOUNT_CHARS_MAX, `must have at most ${ACCOUNT_CHARS_MAX} characters`)
  .regex(/^[\x21-\x7e][\x20-\x7e]*$/, 'must be printable text');
const part = z
  .string()
  .regex(/^[A-Za-z0-9._:-]{1,128}$/, 'must be an id of the provider: letters, digits, dots and dashes');
const parts = z
  .array(part)
  .min(1, 'must name at least one; leave it out for the whole account')
  .max(PARTS_MAX, `must name at most ${PARTS_MAX}`);

const scope = z.strictObject({
  projects: parts.optional().meta({ description: 'OpenAI: ids of projects' }),
  workspaces: parts
    .optional()
    .meta({ description: 'Anthropic: ids of workspaces; `default` is the default workspace' }),
});

const settings = z.strictObject({
  account: account.optional().meta({
    description: 'The provider’s own organization or account, where the provider does not tell it',
  }),
  scope: scope.optional().meta({ description: 'The part of the account that is read; absent: all of it' }),
});

const credentials = z
  .record(z.string().max(64), z.string().min(1, 'must not be empty').max(4_096))
  .meta({ description: 'openai and anthropic: {admin_key}. Kept sealed, never shown again' });

export const createConnectionBody = z
  .strictObject({
    provider: z.string().max(64),
    name: name.optional().meta({ description: 'The provider’s name where absent' }),
    credentials,
    settings: settings.default({}),
  })
  .meta({ id: 'NewBillingConnection' });

export const updateConnectionBody = z
  .strictObject({
    name: name.optional(),
    paused: z.boolean().optional().meta({ description: 'true: no more scheduled syncs' }),
    settings: settings.optional().meta({ description: 'Replaces all of them; the account cannot change' }),
    credentials: credentials.optional().meta({ description: 'Others of the same account' }),
  })
  .meta({ id: 'BillingConnectionChanges' });

export const connectionParams = z.object({ id: z.string() });
export const syncRunParams = z.object({ id: z.string(), run_id: z.string() });

export const listPageQuery = z.object({
  limit: integerParameter(1, 1_000).default(100),
  offset: integerParameter(0, 100_000).default(0),
});

const usd = z.number();

const restatedSchema = z.strictObject({
  day: z.string(),
  feed: z.enum(FEEDS),
  report: z.string(),
  old_usd: usd.nullable(),
  new_usd: usd.nullable(),
});

const missingSchema = z.strictObject({
  report: z.string(),
  period_start: z.string(),
  period_end: z.string().meta({ description: 'Inclusive' }),
  code: z.string(),
  message: z.string(),
});

export const syncRunSchema = z
  .strictObject({
    id: z.string().meta({ example: 'run_0199f3a2c4d57e3a8f00112233445566' }),
    run_id: z.string(),
    kind: z.literal('billing_sync'),
    connection_id: z.string(),
    trigger: z.enum(SYNC_TRIGGERS),
    status: runStatusSchema,
    progress: progressSchema.meta({ description: 'In parts of reports; stage says what is being done' }),
    waiting: z
      .strictObject({ code: z.string(), message: z.string(), until: z.string() })
      .nullable()
      .meta({ description: 'What the provider is waited for, and until when; null while it answers' }),
    result: z
      .strictObject({
        pages: z.int(),
        rows: z.int().meta({ description: 'Rows of days that are new or changed' }),
        changed_days: z.int(),
        period_start: z.string().nullable(),
        period_end: z.string().nullable().meta({ description: 'Inclusive' }),
        restated: z
          .array(restatedSchema)
          .meta({ description: 'Days that the provider had closed and tells otherwise now' }),
        restated_count: z.int(),
        missing: z.array(missingSchema).meta({ description: 'What the next sync takes up' }),
        gap_run_id: z.string().nullable().meta({ description: 'The gap run over what changed' }),
      })
      .nullable(),
    error: runErrorSchema,
    existing: z.boolean().optional().meta({ description: 'A sync was open already: this is that one' }),
    created_at: z.string(),
    started_at: z.string().nullable(),
    finished_at: z.string().nullable(),
    status_url: z.string(),
  })
  .meta({ id: 'BillingSyncRun' });

export const connectionSchema = z
  .strictObject({
    id: z.string().meta({ example: 'con_0199f3a2c4d57e3a8f00112233445566' }),
    provider: z.string(),
    name: z.string(),
    status: z.enum(CONNECTION_STATUSES).meta({
      description: 'connecting until the first sync has ended well; failing while the last did not',
    }),
    provider_account_id: z.string(),
    settings,
    has_credentials: z
      .boolean()
      .meta({ description: 'false: they were given up with a lost secret key; give new ones' }),
    backfill_from: z.string().meta({ description: 'The first UTC day that is asked for' }),
    last_synced_at: z.string().nullable(),
    last_failed_at: z.string().nullable(),
    last_error: runErrorSchema,
    next_sync_at: z.string().nullable().meta({ description: 'About when the schedule asks next' }),
    created_at: z.string(),
    updated_at: z.string(),
    runs_url: z.string(),
    sync: syncRunSchema.optional().meta({ description: 'The sync that the request has begun' }),
  })
  .meta({ id: 'BillingConnection' });

export const listConnectionsResponse = z.strictObject({
  connections: z.array(connectionSchema),
  count: z.int(),
  offset: z.int(),
  has_more: z.boolean(),
});

export const listSyncRunsResponse = z.strictObject({
  runs: z.array(syncRunSchema),
  count: z.int(),
  offset: z.int(),
  has_more: z.boolean(),
});

export const testResponse = z
  .strictObject({
    ok: z.boolean(),
    checks: z.array(
      z.strictObject({
        name: z.string(),
        ok: z.boolean(),
        detail: z.string().meta({ description: 'What is missing and where it is granted' }),
      }),
    ),
  })
  .meta({ id: 'BillingConnectionTest' });

export function runUrlOf(run: SyncRun): string {
  return `${CONNECTIONS_PATH}/${publicId('con', run.connectionId)}/runs/${publicId('run', run.id)}`;
}

/** Settings as a connection keeps them: without what was not given. */
export function settingsOf(given: z.output<typeof settings>): ConnectionSettings {
  const { projects, workspaces } = given.scope ?? {};
  const narrowed = { ...(projects ? { projects } : {}), ...(workspaces ? { workspaces } : {}) };
  return {
    ...(given.account === undefined ? {} : { account: given.account }),
    ...(Object.keys(narrowed).length === 0 ? {} : { scope: narrowed }),
  };
}

export function presentConnection(
  connection: BillingConnection,
  sync?: SyncRun,
): z.output<typeof connectionSchema> {
  const id = publicId('con', connection.id);
  return {
    id,
    provider: connection.provider,
    name: connection.name,
    status: connection.status,
    provider_account_id: connection.accountId,
    settings: settingsOf(connection.settings),
    has_credentials: connection.ciphertext !== null,
    backfill_from: connection.backfillFrom,
    last_synced_at: isoOrNull(connection.lastSyncedAtMicros),
    last_failed_at: isoOrNull(connection.lastFailedAtMicros),
    last_error: presentRunError(connection.lastErrorCode, connection.lastErrorMessage),
    next_sync_at: isoOrNull(connection.nextSyncAtMicros),
    created_at: isoFromMicros(connection.createdAtMicros),
    updated_at: isoFromMicros(connection.updatedAtMicros),
    runs_url: `${CONNECTIONS_PATH}/${id}/runs`,
    ...(sync ? { sync: presentSyncRun(sync) } : {}),
  };
}

export function presentSyncRun(run: SyncRun): z.output<typeof syncRunSchema> {
  const id = publicId('run', run.id);
  return {
    id,
    run_id: id,
    kind: 'billing_sync',
    connection_id: publicId('con', run.connectionId),
    trigger: run.trigger,
    status: run.status,
    progress: presentProgress({ ...run, done: run.doneChunks, total: run.totalChunks }),
    waiting:
      run.waitingCode === null || run.waitingUntilMicros === null
        ? null
        : {
            code: run.waitingCode,
            message: run.waitingMessage ?? run.waitingCode,
            until: isoFromMicros(run.waitingUntilMicros),
          },
    result: run.result && presentResult(run.result),
    error: presentRunError(run.errorCode, run.errorMessage),
    created_at: isoFromMicros(run.createdAtMicros),
    started_at: isoOrNull(run.startedAtMicros),
    finished_at: isoOrNull(run.finishedAtMicros),
    status_url: runUrlOf(run),
  };
}

const usdOrNull = (text: string | null) =>
  text === null ? null : usdNumberFromPico(picoFromDecimal(text) ?? 0n);

function presentResult(result: SyncRunResult): z.output<typeof syncRunSchema>['result'] {
  return {
    pages: result.pages,
    rows: result.rows,
    changed_days: result.changed_days,
    period_start: result.period_start,
    period_end: result.period_end,
    restated: result.restated.map(({ day, feed, report, old_usd, new_usd }) => ({
      day,
      feed,
      report,
      old_usd: usdOrNull(old_usd),
      new_usd: usdOrNull(new_usd),
    })),
    restated_count: result.restated_count,
    missing: result.missing.map(({ report, period_start, period_end, code, message }) => ({
      report,
      period_start,
      period_end,
      code,
      message,
    })),
    gap_run_id: result.gap_run_id === null ? null : publicId('run', result.gap_run_id),
  };
}
