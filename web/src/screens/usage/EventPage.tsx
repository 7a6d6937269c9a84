import { Link, useParams } from 'wouter';
import { Page } from '../../parts/Page';
import { EventDetail } from './EventDetail';

/** One call at an address of its own. */
export default function EventPage() {
  const { id = '' } = useParams();
  return (
    <Page
      title="Call"
      lead={
        <>
          <Link href="/events">Events</Link> · <code>{id}</code>
        </>
      }
    >
      <EventDetail id={id} />
    </Page>
  );
}
