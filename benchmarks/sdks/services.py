"""Rows: services that one pays for, calls, plays, posts to."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from .row import LIMIT, sdk

Steps = Generator[Any, None, None]


@sdk(
    "stripe",
    {
        "GET /v1/customers/leo": {"id": "leo", "object": "customer"},
        "POST /v1/customers": {"id": "bruno", "object": "customer"},
    },
    "client['session'] = mount(requests.Session())",
    shown="StripeClient(..., http_client=stripe.RequestsClient(session=mount(requests.Session())))",
)
def stripe(url: str) -> Steps:
    """Read a customer; make one."""
    import os

    import stripe

    stripe.ca_bundle_path = os.environ["REQUESTS_CA_BUNDLE"]
    options: dict[str, Any] = {}
    yield options
    http_client = stripe.RequestsClient(timeout=LIMIT, **options)
    client = stripe.StripeClient("secret", base_addresses={"api": url}, http_client=http_client, max_network_retries=2)
    yield client.v1.customers.retrieve("leo").id, client.v1.customers.create({}).id


@sdk(
    "twilio",
    {
        "GET /2010-04-01/Accounts/zoo/Messages/1.json": {"sid": "1", "body": "roar"},
        "POST /2010-04-01/Accounts/zoo/Messages.json": {"sid": "2", "body": "growl"},
    },
    "mount(client.http_client.session)",
    host="api.twilio.com",
    why="It mounts an adapter without retries on `https://`, for the size of the pool.",
)
def twilio(url: str) -> Steps:
    """Read a message; send one."""
    from twilio.http.http_client import TwilioHttpClient
    from twilio.rest import Client

    client = Client("zoo", "secret", http_client=TwilioHttpClient(timeout=LIMIT))
    yield client
    yield url, client.messages("1").fetch().body, client.messages.create(to="1", from_="2", body="growl").sid


@sdk(
    "simple-salesforce",
    {
        "GET /services/data/v59.0/query/": {"records": [{"Id": "1"}], "done": True, "totalSize": 1},
        "POST /services/data/v59.0/sobjects/Lion/": {"id": "2", "success": True},
    },
    "mount(client.session)",
)
def salesforce(url: str) -> Steps:
    """Query; make a record."""
    from simple_salesforce import Salesforce

    client = Salesforce(instance_url=url, session_id="secret")
    yield client
    yield client.query("select Id from Lion")["totalSize"], client.Lion.create({"Name": "Leo"})["id"]


@sdk(
    "spotipy",
    {"GET /v1/artists/1": {"id": "1", "name": "Leo"}, "POST /v1/users/leo/playlists": {"id": "2"}},
    "mount(client._session)",
    host="api.spotify.com",
    why="It mounts adapters with a subclass of `Retry`, for every method.",
)
def spotipy(url: str) -> Steps:
    """Read an artist; make a list."""
    from spotipy import Spotify

    client = Spotify("token", requests_timeout=LIMIT)
    yield client
    yield url, client.artist("1")["name"], client.user_playlist_create("leo", "roars")["id"]


@sdk(
    "googlemaps",
    {"GET /maps/api/geocode/json": {"status": "OK", "results": [{"place_id": "zoo"}]}},
    "mount(client.session)",
    host="maps.googleapis.com",
)
def googlemaps(url: str) -> Steps:
    """Find a place."""
    from googlemaps import Client

    client = Client("AIza-secret", timeout=LIMIT, retry_timeout=5)
    yield client
    yield url, client.geocode("zoo")[0]["place_id"]


@sdk(
    "dropbox",
    {
        "POST /2/files/list_folder": {"entries": [], "cursor": "c", "has_more": False},
        "POST /2/users/get_space_usage": {"used": 3, "allocation": {".tag": "individual", "allocated": 9}},
    },
    "mount(client._session, allowed_methods=None)",
    host="api.dropboxapi.com",
    why="It mounts an adapter of its own without retries, for its certificates; it retries in a loop of its own.",
)
def dropbox(url: str) -> Steps:
    """List a folder; ask how much is used. All is POST."""
    import os

    from dropbox import Dropbox

    client = Dropbox("token", timeout=LIMIT, ca_certs=os.environ["REQUESTS_CA_BUNDLE"], max_retries_on_error=0)
    yield client
    yield url, client.files_list_folder("").cursor, client.users_get_space_usage().used


@sdk(
    "boxsdk",
    {
        "GET /2.0/files/1": {"type": "file", "id": "1", "name": "lions"},
        "POST /2.0/folders": {"type": "folder", "id": "2", "name": "bears"},
    },
    "mount(client.session._network_layer._session)",
    host="api.box.com",
)
def box(url: str) -> Steps:
    """Read a file's facts; make a folder."""
    from boxsdk import Client, OAuth2

    client = Client(OAuth2("me", "secret", access_token="token"))
    yield client
    yield url, client.file("1").get().name, client.folder("0").create_subfolder("bears").id


@sdk(
    "facebook-business",
    {
        "GET /*/1/": {"id": "1", "name": "Leo"},
        "POST /*/act_1/campaigns": {"id": "2"},
        "POST /*": {"id": "2"},
        "GET /*": {"id": "1", "name": "Leo"},
    },
    "mount(client._session.requests)",
    host="graph.facebook.com",
)
def facebook(url: str) -> Steps:
    """Read a campaign; make one."""
    from facebook_business.adobjects.adaccount import AdAccount
    from facebook_business.adobjects.campaign import Campaign
    from facebook_business.api import FacebookAdsApi

    client = FacebookAdsApi.init(access_token="token", timeout=LIMIT, crash_log=False)
    yield client
    name = Campaign("1").api_get(fields=["name"])["name"]
    yield url, name, AdAccount("act_1").create_campaign(params={"name": "x"})["id"]


@sdk(
    "pyTelegramBotAPI",
    {
        "GET /bot1:secret/getMe": {"ok": True, "result": {"id": 1, "is_bot": True, "first_name": "Leo"}},
        "POST /bot1:secret/sendMessage": {
            "ok": True,
            "result": {"message_id": 2, "date": 1, "chat": {"id": 3, "type": "private"}, "text": "roar"},
        },
    },
    "client.apihelper.session = mount(requests.Session())",
    host="api.telegram.org",
)
def telegram(url: str) -> Steps:
    """Ask who one is; send a message."""
    import telebot

    telebot.apihelper.READ_TIMEOUT = LIMIT
    yield telebot
    client = telebot.TeleBot("1:secret", threaded=False)
    yield url, client.get_me().first_name, client.send_message(3, "roar", timeout=LIMIT).message_id


@sdk(
    "praw",
    {
        "POST /api/v1/access_token": {
            "access_token": "token",
            "expires_in": 3600,
            "scope": "*",
            "token_type": "bearer",
        },
        "GET /r/zoo/about/": {"kind": "t5", "data": {"id": "1", "display_name": "zoo", "subscribers": 3}},
        "POST /api/subscribe/": {},
    },
    "mount(client._core._authorizer._authenticator._requestor._http)",
    host="oauth.reddit.com",
)
def praw(url: str) -> Steps:
    """Log in; read; subscribe."""
    import praw

    client = praw.Reddit(
        client_id="me",
        client_secret="secret",
        user_agent="zoo",
        check_for_updates=False,
        timeout=LIMIT,
        username="leo",
        password="secret",
        reddit_url=url,
    )
    yield client
    zoo = client.subreddit("zoo")
    yield zoo.subscribers, zoo.subscribe()


@sdk(
    "tweepy",
    {
        "GET /2/tweets/1": {"data": {"id": "1", "text": "roar"}},
        "POST /2/tweets": {"data": {"id": "2", "text": "growl"}},
    },
    "mount(client.session)",
    host="api.twitter.com",
)
def tweepy(url: str) -> Steps:
    """Read a post; post."""
    import tweepy

    client = tweepy.Client("token", "a", "b", "c", "d")
    yield client
    yield url, client.get_tweet(1).data.text, client.create_tweet(text="growl").data["id"]


@sdk(
    "youtube-transcript-api",
    {
        "GET /watch": '<html>"INNERTUBE_API_KEY":"key"</html>',
        "POST /youtubei/v1/player": {
            "playabilityStatus": {"status": "OK"},
            "captions": {
                "playerCaptionsTracklistRenderer": {
                    "captionTracks": [
                        {"baseUrl": "URL/timedtext?v=1", "name": {"runs": [{"text": "English"}]}, "languageCode": "en"}
                    ],
                    "translationLanguages": [],
                }
            },
        },
        "GET /timedtext": '<transcript><text start="0" dur="1">roar</text></transcript>',
    },
    "mount(client._fetcher._http_client)",
    host="www.youtube.com",
)
def youtube(url: str) -> Steps:
    """Fetch a transcript."""
    from youtube_transcript_api import YouTubeTranscriptApi

    client = YouTubeTranscriptApi()
    yield client
    yield url, [each.text for each in client.fetch("abcdefghijk")]


@sdk(
    "zenpy",
    {
        "GET /api/v2/tickets/1.json": {"ticket": {"id": 1, "subject": "a lion is out"}},
        "POST /api/v2/tickets.json": {"ticket": {"id": 2, "subject": "x"}, "audit": {"id": 3}},
    },
    "mount(client.tickets.session)",
    host="zoo.zendesk.com",
    why="It mounts an adapter with `Retry(3)` on `https://`, and waits out a 429 itself.",
)
def zenpy(url: str) -> Steps:
    """Read a ticket; open one."""
    from zenpy import Zenpy
    from zenpy.lib.api_objects import Ticket

    client = Zenpy(subdomain="zoo", email="leo@zoo", token="secret", timeout=LIMIT)
    yield client
    yield url, client.tickets(id=1).subject, client.tickets.create(Ticket(subject="x", description="y")).ticket.id


@sdk(
    "pyairtable",
    {
        "GET /v0/app1/lions/rec1": {"id": "rec1", "createdTime": "2026-11-22T12:00:00Z", "fields": {"Name": "Leo"}},
        "POST /v0/app1/lions": {"id": "rec2", "createdTime": "2026-11-22T12:00:00Z", "fields": {}},
    },
    "mount(client.session)",
    why="It mounts adapters with a `Retry` for a 429.",
)
def airtable(url: str) -> Steps:
    """Read a record; make one."""
    from pyairtable import Api

    client = Api("secret", endpoint_url=url, timeout=(LIMIT, LIMIT))
    yield client
    table = client.table("app1", "lions")
    yield table.get("rec1")["fields"]["Name"], table.create({"Name": "Leo"})["id"]


@sdk(
    "ipinfo",
    {"GET /8.8.8.8": {"ip": "8.8.8.8", "city": "zoo"}},
    "",
    host="ipinfo.io",
)
def ipinfo(url: str) -> Steps:
    """Look an address up."""
    import ipinfo

    client = ipinfo.getHandler("secret", request_options={"timeout": LIMIT})
    yield client
    yield url, client.getDetails("8.8.8.8").city


@sdk(
    "paypalrestsdk",
    {
        "POST /v1/oauth2/token": {"access_token": "token", "token_type": "Bearer", "expires_in": 900},
        "GET /v1/payments/payment/1": {"id": "1", "state": "approved"},
        "POST /v1/payments/payment": {"id": "2", "state": "created"},
    },
    "",
)
def paypal(url: str) -> Steps:
    """Read a payment; make one."""
    import paypalrestsdk

    client = paypalrestsdk.Api(
        {"endpoint": url, "client_id": "me", "client_secret": "secret", "token_endpoint": url, "mode": "sandbox"}
    )
    yield client
    yield paypalrestsdk.Payment.find("1", api=client)["state"], paypalrestsdk.Payment({}, api=client).create()


@sdk(
    "tableauserverclient",
    {
        "POST /api/*/auth/signin": '<tsResponse xmlns="http://tableau.com/api"><credentials token="t">'
        '<site id="1" contentUrl=""/><user id="2"/></credentials></tsResponse>',
        "GET /api/*/sites/1/projects": '<tsResponse xmlns="http://tableau.com/api">'
        '<pagination pageNumber="1" pageSize="9" totalAvailable="1"/>'
        '<projects><project id="3" name="zoo"/></projects></tsResponse>',
    },
    "mount(client.session)",
)
def tableau(url: str) -> Steps:
    """Sign in; list projects."""
    import tableauserverclient

    client = tableauserverclient.Server(url, http_options={"timeout": LIMIT})
    yield client
    client.auth.sign_in(tableauserverclient.TableauAuth("leo", "secret"))
    yield [each.name for each in client.projects.get()[0]]


@sdk(
    "wikipedia",
    {
        "GET /w/api.php": {
            "query": {
                "search": [{"title": "Lion"}],
                "searchinfo": {"totalhits": 1},
                "pages": {"1": {"title": "Lion", "extract": "roar"}},
            }
        }
    },
    "",
    scheme="http",
    host="en.wikipedia.org",
)
def wikipedia(url: str) -> Steps:
    """Search."""
    import wikipedia

    wikipedia.set_lang("en")
    yield wikipedia
    yield url, wikipedia.search("lion")
