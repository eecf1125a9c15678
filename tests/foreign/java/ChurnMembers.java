import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Members that come and go, of Kafka's own client, in one process: python_members.py in Java. */
public class ChurnMembers {
  static final Duration POLL = Duration.ofMillis(100);
  static final Map<String, String> ASSIGNORS =
      Map.of(
          "range", "org.apache.kafka.clients.consumer.RangeAssignor",
          "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

  static String protocol;
  static String assignor;
  static String bootstrap;
  static String topic;

  public static void main(String[] arguments) throws Exception {
    protocol = arguments[0];
    assignor = arguments[1];
    bootstrap = arguments[2];
    topic = arguments[3];
    Map<String, Member> members = new HashMap<>();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words = line.split(" ");
      if (words[0].equals("add")) {
        Member member = new Member(words[1]);
        members.put(words[1], member);
        member.start();
      } else {
        members.remove(words[1]).leaves = true;
      }
    }
    members.values().forEach(each -> each.leaves = true);
  }

  static class Member extends Thread implements ConsumerRebalanceListener {
    final String name;
    volatile boolean leaves = false;
    KafkaConsumer<String, String> consumer;

    Member(String name) {
      this.name = name;
    }

    @Override
    public void run() {
      try {
        consumer = new KafkaConsumer<>(settings(), new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic), this);
        while (!leaves) {
          work();
        }
        consumer.close();
        say("dead", "");
      } catch (Throwable error) {
        String text = error.toString().replaceAll("[\\\\\"\\p{Cntrl}]", " ");
        say("failed", ", \"member_id\": \"" + text + "\"");
      }
    }

    Properties settings() {
      Properties settings = new Properties();
      settings.put("bootstrap.servers", bootstrap);
      settings.put("group.id", topic);
      settings.put("group.protocol", protocol);
      settings.put("client.id", name);
      settings.put("auto.offset.reset", "earliest");
      settings.put("enable.auto.commit", "false");
      if (protocol.equals("classic")) {
        settings.put("partition.assignment.strategy", ASSIGNORS.get(assignor));
        settings.put("session.timeout.ms", "6000");
        settings.put("heartbeat.interval.ms", "500");
      }
      return settings;
    }

    void work() {
      List<String> processed = new ArrayList<>();
      Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
      for (var record : consumer.poll(POLL)) {
        processed.add(pair(record.partition(), record.offset()));
        TopicPartition partition = new TopicPartition(topic, record.partition());
        positions.put(partition, new OffsetAndMetadata(record.offset() + 1));
      }
      if (processed.isEmpty()) {
        return;
      }
      say("processed", positions(processed));
      try {
        consumer.commitSync(positions);
      } catch (KafkaException refused) {
        // Too late, so whoever has the partition now reads those records again; or its coordinator
        // is dead, and it may or may not have happened.
        return;
      }
      List<String> committed = new ArrayList<>();
      positions.forEach((where, what) -> committed.add(pair(where.partition(), what.offset())));
      say("committed", positions(committed));
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
      var now = consumer.groupMetadata();
      String who = ", \"generation\": " + now.generationId();
      say("taken", partitions(assigned) + who + ", \"member_id\": \"" + now.memberId() + "\"");
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
      say("given up", partitions(revoked));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> lost) {
      say("lost", partitions(lost));
    }

    void say(String what, String more) {
      String said = "\", \"what\": \"" + what + "\"" + more + "}";
      String line = "{\"seconds\": " + System.nanoTime() / 1e9 + ", \"name\": \"" + name + said;
      System.out.println(line);
    }

    static String partitions(Collection<TopicPartition> partitions) {
      var numbers = partitions.stream().map(each -> "" + each.partition());
      return ", \"partitions\": [" + numbers.collect(Collectors.joining(", ")) + "]";
    }

    static String positions(List<String> pairs) {
      return ", \"positions\": [" + String.join(", ", pairs) + "]";
    }

    static String pair(int partition, long offset) {
      return "[" + partition + ", " + offset + "]";
    }
  }
}
