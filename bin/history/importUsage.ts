import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '../../platform/startError.js';
import { getFrom, postTo, type RunningService, reasonOf } from '../service/runningService.js';

/** Largest export; `import bills` reads larger ones on the machine of the service. */
const FILE_BYTES_MAX = 268_435_456;
const POLL_MS = 500;
/** Milliseconds for which a queued import is watched before the command ends. */
const PICKUP_MS = 15_000;
const OVER: ReadonlySet<string> = new Set(['succeeded', 'partial', 'failed', 'cancelled']);

/** An import of a bill as the API presents it. */
export interface ImportedBill {
  id: string;
  status: string;
  status_url: string;
  rows: number | null;
  period_start: string | null;
  period_end: string | null;
  error: { message: string } | null;
}

/**
 * Sends OpenAI's usage export to a running service. It has sums and no calls, so it becomes what the provider counted:
 * rows of a bill, with which recorded calls are compared.
 * @throws StartError for a file that is none, and with the reason of a refusal.
 */
export async function importUsage(
  service: RunningService,
  file: string,
  account?: string,
  pickupMs = PICKUP_MS,
): Promise<ImportedBill> {
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile()) throw new StartError(`${file} is no file that can be read.`);
  if (found.size > FILE_BYTES_MAX)
    throw new StartError(
      `${file} is larger than ${FILE_BYTES_MAX} bytes: use ./trueup import bills --provider openai.`,
    );
  const bytes = await readFile(file);
  if (!/^(?:\uFEFF)?\s*[[{]/.test(bytes.toString('utf8', 0, 1_024)))
    throw new StartError(
      `${file}: line 1, column 1: not JSON. Save the answers of GET /v1/organization/usage/completions, or connect the account, which fetches them: docs/connections.md.`,
    );
  const form = new FormData();
  form.append('provider', 'openai');
  if (account !== undefined) form.append('account', account);
  form.append('file', new Blob([new Uint8Array(bytes)]), basename(file));
  const answer = await postTo(service, { path: '/api/v1/billing-imports', body: form });
  if (answer.status !== 202 && answer.status !== 200)
    throw new StartError(`The service refused ${file}: ${reasonOf(answer)}.`);
  const patience = performance.now() + pickupMs;
  for (let bill = JSON.parse(answer.text) as ImportedBill; ; await sleep(POLL_MS)) {
    if (OVER.has(bill.status) || (bill.status === 'queued' && performance.now() > patience)) return bill;
    const next = await getFrom(service, bill.status_url);
    if (next.status !== 200)
      throw new StartError(`${bill.id} is stored, and its progress cannot be read: ${reasonOf(next)}.`);
    bill = JSON.parse(next.text) as ImportedBill;
  }
}
