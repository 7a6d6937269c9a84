import type { TestApi } from './api.js';
import type { GeneratedBills } from './billGenerator.js';
import { until } from './engine.js';

// biome-ignore lint/suspicious/noExplicitAny: answers are checked by the API's own schemas; tests read what they need
type Json = any;

/** Uploads a bill; fields may precede or follow the file. */
export async function uploadBill(
  api: TestApi,
  file: string | Buffer | Blob,
  fields: Record<string, string>,
  options: { key?: string; filename?: string; fileFirst?: boolean } = {},
): Promise<{ status: number; headers: Headers; body: Json }> {
  const form = new FormData();
  const blob =
    file instanceof Blob ? file : new Blob([typeof file === 'string' ? file : new Uint8Array(file)]);
  const addFields = () => {
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
  };
  if (!options.fileFirst) addFields();
  form.append('file', blob, options.filename ?? 'bill.json');
  if (options.fileFirst) addFields();
  const response = await fetch(`${api.baseUrl}/api/v1/billing-imports`, {
    method: 'POST',
    headers: { authorization: `Bearer ${options.key ?? api.adminKey}` },
    body: form,
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === '' ? undefined : JSON.parse(text),
  };
}

const OVER = ['succeeded', 'partial', 'failed', 'cancelled'];

/** Waits for the end of a run or an import by polling its status_url, as a client does. */
export async function pollToEnd(
  api: TestApi,
  statusUrl: string,
  timeoutMs?: number,
  key?: string,
): Promise<Json> {
  const last = await until(
    `the end of ${statusUrl}`,
    () => api.get(statusUrl, key),
    ({ body }) => OVER.includes(body.status),
    timeoutMs,
  );
  return last.body;
}

/** Uploads a bill and waits until it is read. */
export async function importBill(
  api: TestApi,
  file: string | Buffer,
  fields: Record<string, string>,
  key?: string,
): Promise<Json> {
  const { status, body } = await uploadBill(api, file, fields, key === undefined ? {} : { key });
  if (status !== 202) throw new Error(`upload answered ${status}: ${JSON.stringify(body)}`);
  return pollToEnd(api, body.status_url, 180_000, key);
}

/** Imports the generated costs and usage of both providers, then `more`; throws where one is not read whole. */
export async function importGenerated(
  api: TestApi,
  { files }: GeneratedBills,
  more: readonly (keyof GeneratedBills['files'])[] = [],
): Promise<void> {
  const names = ['openaiCosts', 'openaiUsage', 'anthropicCosts', 'anthropicUsage', ...more] as const;
  for (const name of names) {
    const provider = name.startsWith('openai') ? 'openai' : 'anthropic';
    const { status, unparsed, error } = await importBill(api, files[name], { provider });
    if (status !== 'succeeded' || unparsed.length > 0)
      throw new Error(`${name}: ${JSON.stringify({ status, unparsed, error })}`);
  }
}

/** Starts a gap run and waits for its end. */
export async function runGaps(api: TestApi, query = '', timeoutMs = 180_000, key?: string): Promise<Json> {
  const { status, body } = await api.post(`/api/v1/reconciliation/gap-explorer/run${query}`, {}, key);
  if (status !== 202) throw new Error(`run answered ${status}: ${JSON.stringify(body)}`);
  return pollToEnd(api, body.status_url, timeoutMs, key);
}
