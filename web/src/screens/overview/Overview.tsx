import { query } from '../../api/client';
import { Money } from '../../parts/Money';
import { Card, Grid, Page } from '../../parts/Page';
import { ErrorState, Loading } from '../../parts/States';

export default function Overview() {
  const summary = query.useQuery('get', '/api/v1/financial/summary', {});
  if (summary.isPending) return <Loading />;
  if (summary.error) return <ErrorState error={summary.error} retry={() => void summary.refetch()} />;
  return (
    <Page title="Overview" lead="What the providers charged too much, and what rules saved.">
      <Grid>
        <Card title="Recoverable, confirmed">
          <Money usd={summary.data.recoverable_confirmed_usd} />
        </Card>
        <Card title="Recoverable, to review">
          <Money usd={summary.data.recoverable_review_usd} />
        </Card>
      </Grid>
    </Page>
  );
}
