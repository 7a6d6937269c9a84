import type { Endpoint } from '../endpoint.js';

export const reconciliationEndpoints: readonly Endpoint[] = [];
