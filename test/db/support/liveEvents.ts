import type pg from 'pg';

/** A stored event that counts, as the totals see it; read past the product's own queries. */
export interface LiveEvent {
  micros: bigint;
  endMicros: bigint;
  status: string;
  kind: string;
  provider: string;
  billedBy: string;
  account: string;
  providerKey: string;
  model: string;
  responseModel: string | null;
  key: string;
  session: string;
  team: string;
  feature: string;
  project: string;
  user: string;
  tier: string;
  isBatch: boolean;
  band: number;
  source: string;
  input: bigint;
  output: bigint;
  cacheRead: bigint;
  cacheCreation: bigint;
  cacheCreation1h: bigint;
  reasoning: bigint;
  inputAudio: bigint;
  outputAudio: bigint;
  costPico: bigint;
  computedPico: bigint | null;
  reportedPico: bigint;
  costSource: string;
  unmetered: boolean;
  hasGaps: boolean;
}

/** A numeric(24,12) as Postgres writes it → pico-dollars. */
export function picoOfNumeric(text: string): bigint {
  const [whole = '0', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(12, '0'));
}

/** Every event of an organization that no other report supersedes. */
export async function readLiveEvents(superuser: pg.Pool, orgId: string): Promise<LiveEvent[]> {
  const result = await superuser.query<Record<string, string | null>>(
    `select (extract(epoch from timestamp) * 1000000)::bigint::text as micros, (extract(epoch from end_at) * 1000000)::bigint::text as end_micros,
       status, kind, provider, billed_by, provider_account_id, provider_key_id, model, response_model, api_key_id, session_id, team_id, feature,
       project_id, user_id, service_tier, is_batch::text, context_band::text, service_name, scope_name, input_tokens::text, output_tokens::text,
       cache_read::text, cache_creation::text, cache_creation_1h::text, reasoning_tok::text, input_audio::text, output_audio::text,
       cost_usd::text, computed_cost_usd::text, reported_cost_usd::text, cost_source, unmetered::text, cardinality(price_gaps)::text as gaps
     from events where org_id = $1 and superseded_by is null`,
    [orgId],
  );
  return result.rows.map((row) => {
    const count = (name: string) => BigInt(row[name] ?? '0');
    const text = (name: string) => row[name] ?? '';
    return {
      micros: count('micros'),
      endMicros: count('end_micros'),
      status: text('status'),
      kind: text('kind'),
      provider: text('provider'),
      billedBy: text('billed_by'),
      account: text('provider_account_id'),
      providerKey: text('provider_key_id'),
      model: text('model'),
      responseModel: row.response_model ?? null,
      key: text('api_key_id'),
      session: text('session_id'),
      team: text('team_id'),
      feature: text('feature'),
      project: text('project_id'),
      user: text('user_id'),
      tier: text('service_tier'),
      isBatch: row.is_batch === 'true',
      band: Number(row.context_band),
      source: `${text('service_name')}\u001f${text('scope_name')}`,
      input: count('input_tokens'),
      output: count('output_tokens'),
      cacheRead: count('cache_read'),
      cacheCreation: count('cache_creation'),
      cacheCreation1h: count('cache_creation_1h'),
      reasoning: count('reasoning_tok'),
      inputAudio: count('input_audio'),
      outputAudio: count('output_audio'),
      costPico: picoOfNumeric(text('cost_usd')),
      computedPico: row.computed_cost_usd == null ? null : picoOfNumeric(row.computed_cost_usd),
      reportedPico: picoOfNumeric(row.reported_cost_usd ?? '0'),
      costSource: text('cost_source'),
      unmetered: row.unmetered === 'true',
      hasGaps: count('gaps') > 0n,
    };
  });
}

/** Adds up rows by a key: every number and bigint of `of`, exactly. */
export function sumBy<T, M extends Record<string, bigint>>(
  rows: readonly T[],
  keyOf: (row: T) => string,
  of: (row: T) => M,
): Map<string, M> {
  const sums = new Map<string, M>();
  for (const row of rows) {
    const key = keyOf(row);
    const sum = sums.get(key);
    const measures = of(row);
    if (!sum) sums.set(key, { ...measures });
    else for (const name of Object.keys(measures) as (keyof M)[]) sum[name] = add(sum[name], measures[name]);
  }
  return sums;
}

function add<N extends bigint | undefined>(a: N, b: N): N {
  return ((a ?? 0n) + (b ?? 0n)) as N;
}
