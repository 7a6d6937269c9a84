import { expect, it } from 'vitest';
import { AzureOpenaiConnector } from '../../../adapters/billing/azureOpenaiConnector.js';
import type { ProviderAccess } from '../../../adapters/billing/connector.js';
import type { BilledRow } from '../../../domain/billing/billedRow.js';
import { microsOfDay } from '../../../domain/period.js';
import { type AzureCharge, startAzureBilling } from '../../fakes/billing/azureBilling.js';
import { excessByDay, type PublishedCase, shiftDay } from '../../support/published/case.js';
import { PUBLISHED_CASES } from '../../support/published/cases.js';
import { AZURE_RESOURCE, AZURE_SUBSCRIPTION, azureLines } from '../../support/published/documents.js';
import { decimalText, foundOf, gistOf, impactByDay } from '../../support/published/foundOf.js';
import { readBill } from '../../support/readBill.js';
import { fetchChunk } from './support/connections.js';

const SCOPE = `/subscriptions/${AZURE_SUBSCRIPTION}`;
const AZURE = { provider: 'azure_openai', format: 'azure_query_pages', mayBeEmpty: true } as const;
const CREDENTIALS = { tenant_id: 'tenant', client_id: 'client', client_secret: 'secret' };

/** The case's bill as the charges that Cost Management sums: line by line, several for each meter and day. */
function chargesOf(one: PublishedCase): AzureCharge[] {
  return azureLines(one, (day, Meter, lines) =>
    lines.map(
      ({ quantity, rate }): AzureCharge => ({
        day,
        cost: decimalText(quantity * rate, 12),
        quantity: decimalText(quantity, 6),
        dimensions: { Meter, MeterCategory: 'Foundry Models', ResourceId: AZURE_RESOURCE },
      }),
    ),
  ).flat();
}

/** Rows as a connection fetches and reads them. */
async function fetchRows(one: PublishedCase): Promise<BilledRow[]> {
  const last = shiftDay(one.days.at(-1)?.day ?? '', 1);
  const nowMicros = microsOfDay(shiftDay(last, 40));
  const fake = await startAzureBilling({
    truth: {
      tenantId: CREDENTIALS.tenant_id,
      clientId: CREDENTIALS.client_id,
      clientSecret: CREDENTIALS.client_secret,
      scopes: { [SCOPE]: chargesOf(one) },
      currency: 'USD',
    },
    nowSeconds: () => Number(nowMicros / 1_000_000n),
    pageRows: 17,
  });
  try {
    const connector = new AzureOpenaiConnector({
      baseUrl: fake.origin,
      loginBaseUrl: fake.origin,
      nowMicros: () => nowMicros,
      nowMs: () => performance.now(),
      requestGapMs: 0,
    });
    const access: ProviderAccess = {
      credentials: CREDENTIALS,
      settings: { scope: { resource: SCOPE } },
      signal: new AbortController().signal,
    };
    const rows: BilledRow[] = [];
    for (const chunk of connector.plan({ fromDay: one.days[0]?.day ?? '', toDay: last }, nowMicros))
      for (const { body } of await fetchChunk(connector, access, chunk))
        rows.push(...(await readBill(body, AZURE)).rows);
    return rows;
  } finally {
    await fake.close();
  }
}

it('a published mistake of Azure that a connection fetches is the finding that its file is, to the dollar', async () => {
  const one = PUBLISHED_CASES.find(({ format }) => format === 'azure_query_pages') as PublishedCase;
  const fetched = await foundOf(one, fetchRows);
  expect(gistOf(fetched)).toEqual(gistOf(await foundOf(one)));
  expect(impactByDay(fetched)).toEqual(excessByDay(one));
});
