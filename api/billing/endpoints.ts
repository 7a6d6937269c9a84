import type { Endpoint } from '../endpoint.js';

export const billingEndpoints: readonly Endpoint[] = [];
