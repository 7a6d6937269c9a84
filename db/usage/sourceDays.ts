import { add, usageLogSql } from './usageLog.js';

/** What of a call its sources are added up from (`ObservedSource`), and how: SQL over rows of the log. */

/** Classes of which a client that cannot send them leaves cached input among the rest. */
const CACHE_CLASSES = `array['cache_read', 'cache_write_5m', 'cache_write_1h']`;

const signOf = (condition: string) => `sum(case when ${condition} then sign else 0 end)::bigint`;

/** Over rows of the log, or of events with a sign. */
export const SOURCE_MEASURES = {
  calls: 'sum(sign)::bigint',
  without_cache: signOf(`unmetered or usage_missing && ${CACHE_CLASSES}`),
  named_by_answer: signOf(`response_model is not null and status <> 'error'`),
  refused: signOf(`status = 'error' and http_status >= 400`),
} as const;

/** Ordered by bytes, which is all that grouping needs. */
export const SOURCE_KEYS = {
  provider_account_id: `coalesce(provider_account_id, '') collate "C"`,
  provider_key_id: `coalesce(provider_key_id, '') collate "C"`,
  model: `coalesce(response_model, model) collate "C"`,
  service_name: 'service_name collate "C"',
} as const;

/** Names of columns with what they are made of. */
export const asColumns = (columns: Readonly<Record<string, string>>) =>
  Object.entries(columns)
    .map(([name, sql]) => `${sql} as ${name}`)
    .join(', ');

/**
 * The clock of a day of `source_days` is that of `billingDayOf`: Google's is Pacific Time by the rule of timesOfPacificDay, which is
 * written out here, so that no table of time zones decides what is the same day.
 */
export const SOURCE_DAY = `(end_at at time zone case when billed_by = 'google' then 'PST8PDT,M3.2.0,M11.1.0' else 'UTC' end)::date`;

const KEY = `org_id, billed_by, day, ${Object.keys(SOURCE_KEYS).join(', ')}`;
const NAMES = Object.keys(SOURCE_MEASURES);

/** Folds the log of organization $1 from transaction $2 up to $3. `observed_days.sources_revision` counts its rows. */
export const FOLD_SOURCES = `
insert into source_days (${KEY}, ${NAMES.join(', ')})
select $1::uuid, billed_by, ${SOURCE_DAY}, ${asColumns(SOURCE_KEYS)}, ${asColumns(SOURCE_MEASURES)}
from (${usageLogSql('$2', '$3')}) log where status <> 'blocked'
group by 2, 3, 4, 5, 6, 7
on conflict (${KEY}) do update set ${add('source_days', NAMES)}`;
