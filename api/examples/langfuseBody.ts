/** A batch of an older Langfuse client: a generation in two parts, and the labels of its trace. */
export const LANGFUSE = {
  batch: [
    {
      id: '4a3b1c52-7b57-4d0c-9e1a-0a6f6a7c2f10',
      type: 'trace-create',
      timestamp: '2026-01-31T12:00:00.000Z',
      body: {
        id: 'b0b5b2a4-5ad7-4a52-9cde-0e9a3f7fcd01',
        name: 'answer',
        userId: 'user-7',
        sessionId: 'session-9',
        metadata: { team_id: 'growth', feature: 'search' },
      },
    },
    {
      id: '4a3b1c52-7b57-4d0c-9e1a-0a6f6a7c2f11',
      type: 'generation-create',
      timestamp: '2026-01-31T12:00:00.010Z',
      body: {
        id: '9d0f7c7e-55b3-43c7-8a0d-3a52f6b0a9c2',
        traceId: 'b0b5b2a4-5ad7-4a52-9cde-0e9a3f7fcd01',
        model: 'gpt-4o',
        startTime: '2026-01-31T12:00:00.000Z',
      },
    },
    {
      id: '4a3b1c52-7b57-4d0c-9e1a-0a6f6a7c2f12',
      type: 'generation-update',
      timestamp: '2026-01-31T12:00:01.250Z',
      body: {
        id: '9d0f7c7e-55b3-43c7-8a0d-3a52f6b0a9c2',
        traceId: 'b0b5b2a4-5ad7-4a52-9cde-0e9a3f7fcd01',
        endTime: '2026-01-31T12:00:01.250Z',
        usage: { promptTokens: 1_200, completionTokens: 350, totalTokens: 1_550 },
      },
    },
  ],
  metadata: { sdk_name: 'langfuse-js', sdk_version: '3.39.2' },
};
