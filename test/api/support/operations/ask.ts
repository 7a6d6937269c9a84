import type { Operation } from './operation.js';

/** Questions of assistants. Each tool applies the access rules of its read, so every key may send a message. */
export const ASK_OPERATIONS: Record<string, Operation> = {
  mcp: {
    method: 'POST',
    path: '/mcp',
    access: { scope: 'any', workspace: 'own' },
    status: 200,
    request: async () => ({ json: { jsonrpc: '2.0', id: 1, method: 'tools/list' } }),
  },
};
