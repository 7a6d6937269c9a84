import type { Endpoint } from '../endpoint.js';

export const pricingEndpoints: readonly Endpoint[] = [];
