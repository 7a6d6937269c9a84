/** A call of LiteLLM's proxy as its callback `generic_api` reports it, without fields that are not read. */
export const LITELLM = [
  {
    id: 'chatcmpl-example-2',
    call_type: 'acompletion',
    status: 'success',
    custom_llm_provider: 'openai',
    model: 'openai/gpt-4o',
    api_base: 'https://api.openai.com/v1',
    startTime: 1769860800.25,
    endTime: 1769860801.5,
    response_cost: 0.00475,
    end_user: 'user-7',
    metadata: {
      user_api_key_team_id: 'growth',
      requester_metadata: { feature: 'search', session_id: 'session-9' },
      usage_object: {
        prompt_tokens: 1_200,
        completion_tokens: 300,
        total_tokens: 1_500,
        prompt_tokens_details: { cached_tokens: 1_000 },
        completion_tokens_details: { reasoning_tokens: 100 },
      },
    },
  },
];
