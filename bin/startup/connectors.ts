import type { BillingConnector } from '../../adapters/billing/connector.js';
import { type BillingConnectors, createBillingConnectors } from '../../adapters/billing/connectors.js';
import { microsFromDate } from '../../domain/period.js';
import type { Config } from '../../platform/config.js';

/** The connectors to the providers' bills, at the addresses that the settings name. */
export function connectorsOf(config: Config): BillingConnectors {
  return createBillingConnectors(
    {
      openai: config.openaiAdminBaseUrl,
      anthropic: config.anthropicAdminBaseUrl,
      azureManagement: config.azureManagementBaseUrl,
      azureLogin: config.azureLoginBaseUrl,
      awsCostExplorer: config.awsCostExplorerEndpoint,
    },
    { nowMicros: () => microsFromDate(new Date()), nowMs: () => performance.now() },
  );
}

/** How often the bills of a provider are asked for; undefined where no connector does. */
export function pollSecondsOf(connectors: BillingConnectors): (provider: string) => number | undefined {
  const byName: Readonly<Record<string, BillingConnector | undefined>> = connectors;
  return (provider) => byName[provider]?.facts.pollIntervalSeconds;
}
