import { ActivityFailure, isCancellation, proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';

const { planPriceFeeds, failPriceFeed } = proxyActivities<Activities>(PROFILES.database);
const { fetchPriceFeed } = proxyActivities<Activities>(PROFILES.fetching);
const { proposePrices } = proxyActivities<Activities>(PROFILES.pricing);

/**
 * One reading of the price feeds, and the proposals to each organization. A feed that cannot be read is reported and
 * does not stop the others; the next run tries it again.
 */
export async function priceFeeds(): Promise<void> {
  const { urls } = await planPriceFeeds();
  for (const url of urls) {
    setCurrentDetails(url);
    try {
      await fetchPriceFeed({ url });
      await proposePrices({ url });
    } catch (error) {
      if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
      const message = error.cause instanceof Error ? error.cause.message : error.message;
      await failPriceFeed({ url, message });
    }
  }
}
