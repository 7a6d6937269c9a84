import { z } from 'zod';
import type { BillingConnection } from '../../../db/billing/billingConnections.js';
import type { SyncRun, SyncRunResult } from '../../../db/billing/syncRuns.js';
import { FEEDS } from '../../../domain/billing/billedRow.js';
import {
  CONNECTION_STATUSES,
  type ConnectionSettings,
  SYNC_TRIGGERS,
} from '../../../domain/billing/connections.js';
import { parseFxRate } from '../../../domain/billing/pageRow.js';
import { publicId } from '../../../domain/ids.js';
import { usdNumberFromDecimal } from '../../../domain/money.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { offsetParameters, pageFields } from '../../paging.js';
import {
  presentProgress,
  presentRunEnd,
  presentRunError,
  progressSchema,
  runEndFields,
  runErrorSchema,
  runStatusSchema,
} from '../../runs/runWire.js';

/** Parts of an account that one connection may name. */
export const CONNECTIONS_PATH = '/api/v1/billing-connections';

export const connectionParams = z.object({ id: z.string() });
export const listSyncRunsQuery = z.object(offsetParameters());

const restatedSchema = z.strictObject({
  day: z.string(),
  feed: z.enum(FEEDS),
  report: z.string(),
  old_usd: z.number().nullable(),
  new_usd: z.number().nullable(),
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
    progress: progressSchema.meta({
      description: 'In chunks, each a report over at most one page’s span; stage names the present work',
    }),
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
          .meta({ description: 'Days that the provider had closed and states differently now' }),
        restated_count: z.int(),
        missing: z.array(missingSchema).meta({ description: 'What the next sync takes up' }),
        gap_run_id: z.string().nullable().meta({ description: 'The gap run over what changed' }),
      })
      .nullable(),
    ...runEndFields('A sync was open already: this is that one'),
  })
  .meta({ id: 'BillingSyncRun' });

export const listSyncRunsResponse = z.strictObject({ runs: z.array(syncRunSchema), ...pageFields });

export function presentSyncRun(run: SyncRun): z.output<typeof syncRunSchema> {
  const id = publicId('run', run.id);
  const connectionId = publicId('con', run.connectionId);
  return {
    id,
    run_id: id,
    kind: 'billing_sync',
    connection_id: connectionId,
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
    ...presentRunEnd(run, `${CONNECTIONS_PATH}/${connectionId}/runs/${id}`),
  };
}

const usdOrNull = (text: string | null) => (text === null ? null : usdNumberFromDecimal(text));

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
  accounts: parts.optional().meta({ description: 'AWS: ids of linked accounts' }),
});

/** An Azure scope: the Azure Resource Manager path of what the connection reads. */
const azureScope = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(512, 'must have at most 512 characters')
  .meta({ description: 'Azure: /subscriptions/{id}, a resource group of it, or a billing account' });

const rate = z
  .string()
  .regex(/^[0-9]{1,6}(?:\.[0-9]{1,12})?$/, 'must be a decimal such as 1.0842')
  .refine((text) => parseFxRate(text) !== undefined, 'must be above zero');
const FX_MONTHS_MAX = 120;

const settings = z.strictObject({
  account: account.optional().meta({
    description: 'The provider’s own organization or account, where the provider does not name it',
  }),
  region: z
    .string()
    .regex(/^[a-z]{2}(?:-[a-z]+)+-[0-9]$/, 'must be a region such as us-east-1')
    .optional()
    .meta({ description: 'AWS: the region that requests are signed for; us-east-1 where absent' }),
  fx_rate: rate.optional().meta({
    description:
      'US dollars for one unit of the currency, where the bill is not in dollars and names no rate of its own',
  }),
  fx_rates: z
    .record(z.string().regex(/^[0-9]{4}-(?:0[1-9]|1[0-2])$/, 'must be a month such as 2026-10'), rate)
    .refine(
      (rates) => Object.keys(rates).length <= FX_MONTHS_MAX,
      `must name at most ${FX_MONTHS_MAX} months`,
    )
    .optional()
    .meta({
      description: 'The same for single months of the bill, {"2026-10": "1.0842"}; fx_rate is for all others',
    }),
  scope: z
    .union([scope, azureScope])
    .optional()
    .meta({ description: 'The part of the account that is read; absent: all of it. Azure needs one' }),
});

const credentials = z.record(z.string().max(64), z.string().min(1, 'must not be empty').max(4_096)).meta({
  description:
    'openai and anthropic: {admin_key}; azure_openai: {tenant_id, client_id, client_secret}; aws_bedrock: {access_key_id, secret_access_key, session_token?}. Kept sealed, never shown again',
});

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

export const listConnectionsQuery = z.object(offsetParameters());
export const listConnectionsResponse = z.strictObject({
  connections: z.array(connectionSchema),
  ...pageFields,
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

/** The connection settings to store, without the fields that the request omitted. */
export function settingsOf(given: z.output<typeof settings>): ConnectionSettings {
  const account = {
    ...(given.account === undefined ? {} : { account: given.account }),
    ...(given.region === undefined ? {} : { region: given.region }),
    ...(given.fx_rate === undefined ? {} : { fxRate: given.fx_rate }),
    ...(given.fx_rates === undefined ? {} : { fxRates: given.fx_rates }),
  };
  if (typeof given.scope === 'string') return { ...account, scope: { resource: given.scope } };
  const narrowed = narrowedBy(given.scope ?? {});
  return { ...account, ...(Object.keys(narrowed).length === 0 ? {} : { scope: narrowed }) };
}

/** The reverse of `settingsOf`. */
function presentSettings({
  account,
  region,
  fxRate,
  fxRates,
  scope: kept,
}: ConnectionSettings): z.output<typeof settings> {
  const narrowed = narrowedBy(kept ?? {});
  const shown = kept?.resource ?? (Object.keys(narrowed).length === 0 ? undefined : narrowed);
  return {
    ...(account === undefined ? {} : { account }),
    ...(region === undefined ? {} : { region }),
    ...(fxRate === undefined ? {} : { fx_rate: fxRate }),
    ...(fxRates === undefined ? {} : { fx_rates: fxRates }),
    ...(shown === undefined ? {} : { scope: shown }),
  };
}

interface Parts {
  projects?: string[];
  workspaces?: string[];
  accounts?: string[];
}

function narrowedBy({ projects, workspaces, accounts }: { [K in keyof Parts]: Parts[K] | undefined }): Parts {
  return {
    ...(projects ? { projects } : {}),
    ...(workspaces ? { workspaces } : {}),
    ...(accounts ? { accounts } : {}),
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
    settings: presentSettings(connection.settings),
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
