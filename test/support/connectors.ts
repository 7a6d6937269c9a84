import {
  type BillingConnectors,
  createBillingConnectors,
  type ProviderAddresses,
} from '../../adapters/billing/connectors.js';
import { microsFromDate } from '../../domain/period.js';
import { SecretKeys } from '../../platform/secretKeys.js';

/** An address without a listener. */
const NOWHERE = 'http://127.0.0.1:1';

/** A key for tests; the same in every process of a test. */
export const TEST_SECRET_KEY = Buffer.alloc(32, 'test secret key ').toString('base64');

export function testSecretKeys(): SecretKeys {
  return SecretKeys.of(TEST_SECRET_KEY);
}

/** The product's connectors, connected to loopback providers and without the pauses that a real one requires. */
export function testConnectors(
  baseUrls: Partial<ProviderAddresses> = {},
  nowMicros = () => microsFromDate(new Date()),
): BillingConnectors {
  return createBillingConnectors(
    {
      openai: NOWHERE,
      anthropic: NOWHERE,
      azureManagement: NOWHERE,
      azureLogin: NOWHERE,
      awsCostExplorer: NOWHERE,
      ...baseUrls,
    },
    { nowMicros, nowMs: () => performance.now(), requestGapMs: 0, deadlineMs: 60_000 },
  );
}
