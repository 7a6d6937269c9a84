import { expect } from 'vitest';
import { Trueup } from '../../../../sdk/js/src/node.js';
import { readEvents } from '../../../clients/support/observedEvents.js';
import { type ScriptedAnswer, startScriptedApi } from '../../../fakes/scriptedApi.js';
import type { TestApi } from '../../../support/api.js';

export type ObservedCalls = (
  /** Sends requests for any host to the fake. */
  fetchTo: typeof fetch,
  observed: <Client extends object>(client: Client) => Client,
) => Promise<unknown>;

/**
 * Makes the same calls with and without the package, and expects the same results; returns the events.
 *
 * @param settle runs before the package is closed
 */
export async function compareRuns(
  api: TestApi,
  answers: readonly ScriptedAnswer[],
  calls: ObservedCalls,
  settle: () => Promise<void> = async () => undefined,
) {
  const run = async (observed: <Client extends object>(client: Client) => Client) => {
    const provider = await startScriptedApi(answers);
    const fetchTo: typeof fetch = (input, init) => {
      const { pathname, search } = new URL(String(input));
      return fetch(`${provider.origin}${pathname}${search}`, init);
    };
    try {
      return JSON.stringify(await calls(fetchTo, observed));
    } finally {
      await provider.close();
    }
  };
  const organization = await api.addOrganization();
  const plain = await run((client) => client);
  const trueup = new Trueup({ url: api.baseUrl, apiKey: organization.ingestKey, flushAtExit: false });
  expect(await run((client) => trueup.observe(client))).toBe(plain);
  await settle();
  await trueup.close();
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests assert
  return (await readEvents(api.baseUrl, organization.adminKey, Date.now())) as any[];
}
