/** Both connectors beside their loopback providers. */
import type {
  BillingConnector,
  ConnectionSettings,
  ConnectorOptions,
  FetchedPage,
  ProviderAccess,
  ReportChunk,
} from '../../../../adapters/billing/connector.js';
import { createBillingConnectors } from '../../../../adapters/billing/connectors.js';
import { startAnthropicBilling } from '../../../fakes/billing/anthropicBilling.js';
import { startOpenAiBilling } from '../../../fakes/billing/openAiBilling.js';
import type { BillingFake } from '../../../fakes/billing/reportServer.js';
import { anthropicTruth, NOW_MICROS, NOW_SECONDS, openaiTruth } from './truths.js';

export const ADMIN_KEYS = {
  openai: 'sk-admin-S3cretOfOpenAi0123456789',
  anthropic: 'sk-ant-admin01-S3cretOfAnthropic0123456789',
} as const;

export type ProviderName = keyof typeof ADMIN_KEYS;
export const PROVIDER_NAMES: ProviderName[] = ['openai', 'anthropic'];

const running: BillingFake[] = [];

/** A loopback provider with the small truth; closed by `stopProviders`. */
export async function startProvider(provider: ProviderName): Promise<BillingFake> {
  const options = { adminKey: ADMIN_KEYS[provider], nowSeconds: () => NOW_SECONDS };
  const fake =
    provider === 'openai'
      ? await startOpenAiBilling({ ...options, truth: openaiTruth() })
      : await startAnthropicBilling({ ...options, truth: anthropicTruth() });
  running.push(fake);
  return fake;
}

export async function stopProviders(): Promise<void> {
  await Promise.all(running.splice(0).map((fake) => fake.close()));
}

/** The connector of a provider at `origin`, without a gap between requests. */
export function connectorAt(
  provider: ProviderName,
  origin: string,
  overrides: Partial<ConnectorOptions> = {},
): BillingConnector {
  return createBillingConnectors(
    {
      openai: origin,
      anthropic: origin,
      azureManagement: origin,
      azureLogin: origin,
      awsCostExplorer: origin,
    },
    {
      nowMicros: () => NOW_MICROS,
      nowMs: () => performance.now(),
      requestGapMs: 0,
      ...overrides,
    },
  )[provider];
}

export function accessOf(
  provider: ProviderName,
  settings: ConnectionSettings = {},
  signal: AbortSignal = new AbortController().signal,
  adminKey: string = ADMIN_KEYS[provider],
): ProviderAccess {
  return { credentials: { admin_key: adminKey }, settings, signal };
}

/** Every page of a chunk. */
export async function fetchChunk(
  connector: BillingConnector,
  access: ProviderAccess,
  chunk: ReportChunk,
): Promise<FetchedPage[]> {
  const pages: FetchedPage[] = [];
  for (let cursor: string | null = null; ; ) {
    const page: FetchedPage = await connector.fetchPage(access, chunk, cursor);
    pages.push(page);
    cursor = page.nextCursor;
    if (cursor === null) return pages;
  }
}
