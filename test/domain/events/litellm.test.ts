import { describe, expect, it } from 'vitest';
import { callOf } from './support.js';

/**
 * Attributes that the `otel` callback of LiteLLM's proxy 1.106.2 sent for a call of a provider on loopback, without
 * the prompts and with OpenAI's address in place of the loopback.
 */
const REQUEST = {
  'metadata.user_api_key_hash': 'litellm_proxy_master_key',
  'metadata.user_api_key_alias': '',
  'metadata.user_api_key_team_id': '',
  'metadata.user_api_key_user_id': 'default_user_id',
  'metadata.user_api_key_end_user_id': 'u1',
  'metadata.team_id': 'platform',
  hidden_params: '{"model_id": "757511f4", "cache_key": null, "api_base": "https://api.openai.com/v1/"}',
  'litellm.model_group': 'gpt-4o',
  'litellm.provider.model': 'openai/gpt-4o',
  'gen_ai.cost.input_cost': 0.00175,
  'gen_ai.cost.output_cost': 0.003,
  'gen_ai.cost.total_cost': 0.00475,
  'gen_ai.request.model': 'gpt-4o',
  'llm.request.type': 'acompletion',
  'gen_ai.system': 'openai',
  'llm.is_streaming': 'True',
  'llm.user': 'u1',
  'gen_ai.response.id': 'chatcmpl-1',
  'gen_ai.response.model': 'gpt-4o',
  'gen_ai.usage.total_tokens': 1500,
  'gen_ai.usage.output_tokens': 300,
  'gen_ai.usage.input_tokens': 1200,
  'gen_ai.operation.name': 'acompletion',
  'gen_ai.response.finish_reasons': '["stop"]',
};

describe('a call through the proxy of LiteLLM', () => {
  it('has the provider’s response id, the tokens, the cost, the team and the user', () => {
    expect(callOf({ scope: 'litellm', attributes: REQUEST })).toMatchObject({
      provider: 'openai',
      model: 'gpt-4o',
      responseId: 'chatcmpl-1',
      usage: { input: 1200, output: 300 },
      reportedCostPico: 4_750_000_000n,
      teamId: 'platform',
      userId: 'u1',
      stopReason: 'stop',
      status: 'ok',
      origin: { usageSource: 'litellm' },
    });
  });

  it('is of the team of its key before the team that the request names', () => {
    const attributes = { ...REQUEST, 'metadata.user_api_key_team_id': 'growth' };
    expect(callOf({ scope: 'litellm', attributes }).teamId).toBe('growth');
  });

  it('is billed by the host behind the proxy', () => {
    expect(callOf({ scope: 'litellm', attributes: REQUEST }).billedBy).toBe('openai');
    const attributes = { ...REQUEST, hidden_params: '{"api_base": "http://127.0.0.1:18401/v1/"}' };
    expect(callOf({ scope: 'litellm', attributes }).billedBy).toBe('unknown');
  });
});
