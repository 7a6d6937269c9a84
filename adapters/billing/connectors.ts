import { AnthropicConnector } from './anthropicConnector.js';
import type { BillingConnector, ConnectedProvider } from './connector.js';
import { OpenaiConnector } from './openaiConnector.js';

/** What a connector needs of the process. */
export interface ConnectorOptions {
  /** Where the provider is asked, from the configuration. */
  baseUrl: string;
  /** The time now, microseconds since 1970. */
  nowMicros(): bigint;
  /** Milliseconds of a clock that never goes back; keeps the gap between requests. */
  nowMs(): number;
  /** Another gap than the provider's own; shorter in tests. */
  requestGapMs?: number;
  deadlineMs?: number;
  pageBytesMax?: number;
}

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
