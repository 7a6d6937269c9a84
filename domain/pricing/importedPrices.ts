/** The public price collections that can be imported. */
export const PRICE_COLLECTIONS = ['litellm', 'models_dev'] as const;
export type PriceCollection = (typeof PRICE_COLLECTIONS)[number];
