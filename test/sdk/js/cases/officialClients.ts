import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Anthropic } from '@anthropic-ai/sdk';
import type { OpenAI } from 'openai';

export type { Anthropic, OpenAI };

/** The official clients that the tests observe: the repository's own, or other versions of them. */
export interface OfficialClients {
  OpenAI: typeof OpenAI;
  AzureOpenAI: typeof import('openai').AzureOpenAI;
  Anthropic: typeof Anthropic;
  GoogleGenAI: typeof import('@google/genai').GoogleGenAI;
  // biome-ignore lint/suspicious/noExplicitAny: its types and the product's make the compiler compare schemas differently
  Mistral: any;
  CohereClient: typeof import('cohere-ai').CohereClient;
  CohereClientV2: typeof import('cohere-ai').CohereClientV2;
  BedrockRuntimeClient: typeof import('@aws-sdk/client-bedrock-runtime').BedrockRuntimeClient;
  ConverseCommand: typeof import('@aws-sdk/client-bedrock-runtime').ConverseCommand;
  ConverseStreamCommand: typeof import('@aws-sdk/client-bedrock-runtime').ConverseStreamCommand;
  InvokeModelCommand: typeof import('@aws-sdk/client-bedrock-runtime').InvokeModelCommand;
  InvokeModelWithResponseStreamCommand: typeof import('@aws-sdk/client-bedrock-runtime').InvokeModelWithResponseStreamCommand;
  NodeHttpHandler: typeof import('@smithy/node-http-handler').NodeHttpHandler;
}

export type LoadClients = () => Promise<OfficialClients>;

const PACKAGES = [
  'openai',
  '@anthropic-ai/sdk',
  '@google/genai',
  '@mistralai/mistralai',
  'cohere-ai',
  '@aws-sdk/client-bedrock-runtime',
  '@smithy/node-http-handler',
] as const;

/** The versions that the repository has. */
export const repositoryClients: LoadClients = async () => merged(PACKAGES.map((name) => import(name)));

/** Versions in a folder with its own node_modules. */
export function clientsIn(folder: string): LoadClients {
  const { resolve } = createRequire(join(folder, 'package.json'));
  return () => merged(PACKAGES.map((name) => import(resolve(name))));
}

async function merged(modules: Promise<object>[]): Promise<OfficialClients> {
  const all: Record<string, unknown> = {};
  for (const module of await Promise.all(modules)) {
    const { default: whole, ...named } = module as Record<string, unknown>;
    Object.assign(all, typeof whole === 'object' ? whole : {}, named);
  }
  return all as unknown as OfficialClients;
}
