import { Context } from '@temporalio/activity';
import { failPriceFeed, fetchPriceFeed, proposePrices } from '../usecases/pricing/priceFeeds.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';

/** The activities of reading price feeds; their inputs are addresses, because files are too large for histories. */
export function createPriceFeedActivities(deps: ActivityDeps) {
  const signal = () => Context.current().cancellationSignal;
  return {
    // Reads the settings only.
    planPriceFeeds: async (): Promise<{ urls: string[] }> => ({
      urls: deps.priceFeeds.map(({ url }) => url),
    }),

    fetchPriceFeed: ({ url }: { url: string }): Promise<void> =>
      // A repeat stores the same file, or learns that it has not changed.
      withFailures(() => withHeartbeat(() => fetchPriceFeed(deps, url, signal()))),

    failPriceFeed: ({ url, message }: { url: string; message: string }): Promise<void> =>
      // A feed has one row, so a repeat stores the same.
      withFailures(() => failPriceFeed(deps, url, message)),

    proposePrices: ({ url }: { url: string }): Promise<void> =>
      // Equal proposals are stored once; a repeat continues with the organizations that are left.
      withFailures(() => withHeartbeat(() => proposePrices(deps, url, signal()))),
  };
}
