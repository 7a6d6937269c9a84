import { describe, expect, it } from 'vitest';
import { hostOf, identityBiller, resolveBiller } from '../../../domain/events/biller.js';
import { mapSdkEvents } from '../../../domain/events/sdkEvents.js';
import { PROVIDER_FACTS } from '../../../domain/providers.js';
import { callWith, context, LEAST, rejectionOf } from './support.js';

const resolve = (
  words: string[],
  hosts: string[] = [],
  models: string[] = [],
  api?: 'openai' | 'anthropic',
) => resolveBiller({ words, hosts, models, api }, context.inferProvider);

describe('the provider', () => {
  const aliases = PROVIDER_FACTS.flatMap(({ slug, aliases: words }) =>
    [slug, ...words].map((word) => [word, slug] as const),
  );

  it.each(aliases)('%s is %s, in any case and before a dot', (word, slug) => {
    expect(resolve([word])?.provider).toBe(slug);
    expect(resolve([word.toUpperCase()])?.provider).toBe(slug);
  });

  it.each([
    ['openai.chat', 'openai'],
    ['google.generative-ai', 'google'],
    ['amazon-bedrock', 'aws_bedrock'],
    ['azure.ai.inference', 'azure_openai'],
    ['aws', 'aws_bedrock'],
    ['vertex.anthropic.messages', 'google'],
  ])('%s is %s', (word, slug) => {
    expect(resolve([word])?.provider).toBe(slug);
  });

  it('is inferred from the model only when the span names none', () => {
    expect(resolve([], [], ['gpt-4o'])?.provider).toBe('openai');
    expect(resolve([], [], ['deployment-7', 'claude-x'])?.provider).toBe('anthropic');
    expect(resolve(['groq'], [], ['gpt-4o'])).toBeUndefined();
    expect(resolve([], [], ['llama'])).toBeUndefined();
  });

  it('is not named by a framework', () => {
    expect(resolve(['Langchain'], [], ['gpt-4o'])?.provider).toBe('openai');
  });

  it('outside the eight rejects the span with a reason', () => {
    const fault = rejectionOf({ attributes: { ...LEAST, 'gen_ai.system': 'groq' } });
    expect(fault).toMatchObject({ index: 0, reason: 'unknown_provider', scopeName: 'test-scope' });
    expect(fault.message).toContain('groq');
  });
});

describe('the biller', () => {
  it.each([
    ['api.openai.com', 'openai'],
    ['eu.api.openai.com', 'openai'],
    ['shop.openai.azure.com', 'azure_openai'],
    ['shop.cognitiveservices.azure.com', 'azure_openai'],
    ['api.anthropic.com', 'anthropic'],
    ['bedrock-runtime.eu-central-1.amazonaws.com', 'aws_bedrock'],
    ['generativelanguage.googleapis.com', 'google'],
    ['europe-west4-aiplatform.googleapis.com', 'google'],
    ['api.mistral.ai', 'mistral'],
    ['api.cohere.com', 'cohere'],
    ['api.x.ai', 'xai'],
  ])('%s bills as %s, whatever the client is called', (host, biller) => {
    expect(resolve(['openai'], [host])).toEqual({
      provider: 'openai',
      billedBy: biller,
      billerFromHost: true,
    });
    expect(resolve(['groq'], [host])?.provider).toBe(biller);
  });

  it.each([
    'api.deepseek.com',
    '127.0.0.1',
    'gateway.internal:8080',
    'https://openrouter.ai/api/v1',
    'api.openai.com.evil.test',
  ])('the OpenAI client pointed at %s is not billed by OpenAI', (host) => {
    expect(resolve(['openai'], [host])).toEqual({
      provider: 'openai',
      billedBy: 'unknown',
      billerFromHost: true,
    });
  });

  it('is read from the host before the provider name, and from the name where there is no host', () => {
    expect(callWith({ 'server.address': 'api.mistral.ai' }).billedBy).toBe('mistral');
    expect(callWith({}).billedBy).toBe('openai');
  });

  it('is read from any known address', () => {
    const call = callWith({
      'server.address': '10.0.0.1',
      'url.full': 'https://api.openai.com/v1/chat/completions',
    });
    expect(call.billedBy).toBe('openai');
  });

  it('is unknown where an unknown provider is named before a known one', () => {
    const call = callWith({ 'gen_ai.system': '', 'llm.provider': 'deepseek', 'llm.system': 'openai' });
    expect(call).toMatchObject({ provider: 'openai', billedBy: 'unknown' });
  });

  it('falls back to the API that the client speaks when its provider is a gateway', () => {
    expect(resolve(['openrouter'], ['openrouter.ai'], [], 'openai')).toMatchObject({
      provider: 'openai',
      billedBy: 'unknown',
    });
  });

  it('names the provider where only a host is known', () => {
    expect(resolve([], ['api.anthropic.com'])).toMatchObject({
      provider: 'anthropic',
      billedBy: 'anthropic',
    });
  });
});

describe('hosts', () => {
  it.each([
    ['https://user:secret@API.openai.com:443/v1?x=@y', 'api.openai.com'],
    ['api.openai.com:443', 'api.openai.com'],
    ['[::1]:8080', '::1'],
    ['http://[2001:db8::1]/v1', '2001:db8::1'],
    ['', undefined],
    ['https://', undefined],
  ])('%s has the host %s', (address, host) => {
    expect(hostOf(address)).toBe(host);
  });
});

describe('the namespace of response ids', () => {
  it('is one for a report that saw a gateway and one that saw no host, but apart for two hosts', () => {
    const gateway = { provider: 'openai', billedBy: 'unknown', billerFromHost: true } as const;
    const word = { provider: 'openai', billedBy: 'openai', billerFromHost: false } as const;
    const azure = { provider: 'openai', billedBy: 'azure_openai', billerFromHost: true } as const;
    expect(identityBiller(gateway)).toBe(identityBiller(word));
    expect(identityBiller(azure)).toBe('azure_openai');
  });
});

describe('a gateway', () => {
  it.each([
    ['openrouter', 'anthropic/claude-sonnet-4.5', 'anthropic'],
    ['openrouter.chat', 'x-ai/grok-4', 'xai'],
    ['openrouter', 'openrouter/mistralai/mistral-large', 'mistral'],
    ['gateway', 'openai/gpt-4o', 'openai'],
    ['vercel_ai_gateway', 'google/gemini-2.5-pro', 'google'],
    ['gateway', 'gpt-4o', 'openai'],
  ])('named %s bills %s, a model of %s', (word, model, provider) => {
    const billed = { provider, billedBy: 'unknown' };
    expect(resolve([word], [], [model])).toMatchObject(billed);
    expect(resolve(['openai', word], [], [model])).toMatchObject(billed);
  });

  it.each(['https://openrouter.ai/api/v1', 'eu.openrouter.ai', 'https://ai-gateway.vercel.sh/v1'])(
    'at %s bills the call, and the model’s id names the provider',
    (host) => {
      const billed = { billedBy: 'unknown', billerFromHost: true };
      expect(resolve(['openai'], [host], ['anthropic/claude-sonnet-4.5'])).toEqual({
        ...billed,
        provider: 'anthropic',
      });
      expect(resolve([], [host], ['x-ai/grok-4'])).toEqual({ ...billed, provider: 'xai' });
      expect(resolve(['openai'], [host], ['gpt-4o'])).toEqual({ ...billed, provider: 'openai' });
    },
  );

  it('does not bill what goes to a provider’s own host', () => {
    expect(resolve(['gateway'], ['api.openai.com'], ['openai/gpt-4o'])?.billedBy).toBe('openai');
  });

  it('with a model of another maker names no provider', () => {
    expect(resolve(['openrouter'], [], ['deepseek/deepseek-chat'])).toBeUndefined();
  });

  it('is not claimed by a similar host', () => {
    expect(resolve([], ['openrouter.ai.evil.test'], ['x-ai/grok-4'])).toBeUndefined();
  });

  it('is read from the events of wrappers', () => {
    const event = {
      provider: 'openrouter',
      model: 'anthropic/claude-sonnet-4.5',
      timestamp: '2026-11-20T11:00:00Z',
      request_id: 'gen-1',
      input_tokens: 10,
      output_tokens: 2,
    };
    const { calls, rejections } = mapSdkEvents([event], context);
    expect(rejections).toEqual([]);
    expect(calls[0]).toMatchObject({ provider: 'anthropic', billedBy: 'unknown' });
  });
});
