import { AnthropicConnector } from './anthropicConnector.js';
import type { BillingConnector, ConnectedProvider, ConnectorOptions } from './connector.js';
import { OpenaiConnector } from './openaiConnector.js';

/** The connectors of a process, by provider. */
export type BillingConnectors = Readonly<Record<ConnectedProvider, BillingConnector>>;

/** Every connector, each with its own base address. */
export function createBillingConnectors(
  baseUrls: Readonly<Record<ConnectedProvider, string>>,
  options: Omit<ConnectorOptions, 'baseUrl'>,
): BillingConnectors {
  return {
    openai: new OpenaiConnector({ ...options, baseUrl: baseUrls.openai }),
    anthropic: new AnthropicConnector({ ...options, baseUrl: baseUrls.anthropic }),
  };
}
