import { AnthropicConnector } from './anthropicConnector.js';
import { AwsBedrockConnector } from './awsBedrockConnector.js';
import { AzureOpenaiConnector } from './azureOpenaiConnector.js';
import type { BillingConnector, ConnectedProvider, ConnectorOptions } from './connector.js';
import { OpenaiConnector } from './openaiConnector.js';

export type BillingConnectors = Readonly<Record<ConnectedProvider, BillingConnector>>;

export interface ProviderAddresses {
  openai: string;
  anthropic: string;
  azureManagement: string;
  azureLogin: string;
  awsCostExplorer: string;
}

export function createBillingConnectors(
  baseUrls: Readonly<ProviderAddresses>,
  options: Omit<ConnectorOptions, 'baseUrl'>,
): BillingConnectors {
  return {
    openai: new OpenaiConnector({ ...options, baseUrl: baseUrls.openai }),
    anthropic: new AnthropicConnector({ ...options, baseUrl: baseUrls.anthropic }),
    azure_openai: new AzureOpenaiConnector({
      ...options,
      baseUrl: baseUrls.azureManagement,
      loginBaseUrl: baseUrls.azureLogin,
    }),
    aws_bedrock: new AwsBedrockConnector({ ...options, baseUrl: baseUrls.awsCostExplorer }),
  };
}
